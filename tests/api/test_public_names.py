"""Public names of the package, their signatures, and that importing it needs nothing but a disk."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import pwd
import re

import pytest

import holdfast
from holdfast import AsyncMemory, ConfigError, HoldfastError, Memory, UsageError, config, errors
from holdfast.models import RECALL_OPTIONS
from holdfast.server.routes.recall import Recall

NAMES = [
    "Answer",
    "AsyncMemory",
    "Busy",
    "ConfigError",
    "Conflict",
    "Contended",
    "Damaged",
    "Denied",
    "Disabled",
    "DiskTrouble",
    "Fact",
    "Hit",
    "HoldfastError",
    "InvalidKey",
    "InvalidPath",
    "InvalidText",
    "Logged",
    "Memory",
    "NoScope",
    "NotFound",
    "Note",
    "Purged",
    "QuotaExceeded",
    "Receipt",
    "Refused",
    "Scope",
    "SecretFound",
    "Source",
    "Stored",
    "TooLarge",
    "TooMany",
    "Trouble",
    "Turn",
    "Unauthenticated",
    "Unreached",
    "Unrecorded",
    "Unsure",
    "UsageError",
    "Version",
    "__version__",
]
VERBS = [
    "accept_relation",
    "adopt",
    "approve",
    "boot",
    "brief",
    "check",
    "clear",
    "close",
    "embed",
    "expand",
    "export",
    "fact",
    "facts",
    "forget",
    "forget_session",
    "forget_source",
    "get",
    "graph",
    "history",
    "import_history",
    "list",
    "log",
    "mark",
    "operator_list",
    "operator_read",
    "operator_send",
    "path",
    "projects",
    "purge",
    "quarantine",
    "read",
    "recall",
    "receipts",
    "reindex",
    "reject",
    "reject_relation",
    "relate",
    "relations",
    "render",
    "restore",
    "restore_session",
    "retain",
    "review",
    "scaffold",
    "search",
    "status",
    "store",
    "store_many",
    "trace",
    "unrelate",
    "trash",
]
FILE_VERBS = ["create", "delete", "insert", "rename", "str_replace", "view"]
ATTRIBUTES = ["agent", "config", "files", "home", "project", "session", "origin"]
STREAMS = ("export",)
ARGUMENTS = {
    "relate": ("k", "supersedes", "l"),
    "unrelate": ("k", "supersedes", "l"),
    "accept_relation": ("k", "supersedes", "l"),
    "reject_relation": ("k", "supersedes", "l"),
    "adopt": ("old",),
    "trace": ("k",),
    "reject": ("k",),
    "forget_source": ("origin:web",),
    "approve": ("k",),
    "quarantine": ("k",),
    "clear": ("project",),
    "expand": ("t",),
    "fact": ("a", "b", "c"),
    "forget": ("k",),
    "get": ("k",),
    "graph": ("a",),
    "history": ("k",),
    "import_history": ("a.jsonl",),
    "log": ([],),
    "operator_send": ("x",),
    "path": ("a", "b"),
    "purge": ("k",),
    "read": ("a.md",),
    "recall": ("x",),
    "restore": ("k",),
    "render": ("a.md",),
    "scaffold": ("wiki",),
    "search": ("x",),
    "store": ("x",),
    "store_many": ([],),
}
FILE_ARGUMENTS = {
    "trace": ("k",),
    "reject": ("k",),
    "forget_source": ("origin:web",),
    "approve": ("k",),
    "create": ("a.md", "x"),
    "delete": ("a.md",),
    "insert": ("a.md", 0, "x"),
    "rename": ("a", "b"),
    "str_replace": ("a", "b", "c"),
    "view": ("a.md",),
}


def public(thing):
    return sorted(name for name in dir(thing) if not name.startswith("_"))


# --- names ------------------------------------------------------------------------------------------------------------


def test_the_front_door_has_exactly_these_names():
    assert dir(holdfast) == sorted(NAMES)
    assert sorted(holdfast.__all__) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_name_can_be_imported(name):
    assert getattr(holdfast, name) is not None


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError):
        holdfast.Nothing
    with pytest.raises(ImportError):
        from holdfast import Nothing  # noqa: F401


def test_memory_has_exactly_these_verbs_and_attributes(memory):
    assert public(memory) == sorted(VERBS + ATTRIBUTES)
    assert public(memory.files) == FILE_VERBS


def test_the_version_is_a_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", holdfast.__version__)


# --- signatures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_async_memory_has_each_verb_with_the_same_signature(verb):
    theirs, ours = inspect.signature(getattr(AsyncMemory, verb)), inspect.signature(getattr(Memory, verb))
    if verb in STREAMS:  # iterated, not awaited
        assert theirs.parameters == ours.parameters
        assert theirs.return_annotation == f"Async{ours.return_annotation}"
        return
    assert theirs == ours
    assert inspect.iscoroutinefunction(getattr(AsyncMemory, verb))
    assert getattr(AsyncMemory, verb).__doc__ == getattr(Memory, verb).__doc__


@pytest.mark.parametrize("attribute", [name for name in ATTRIBUTES if name != "config"])
def test_async_memory_has_each_attribute(attribute):
    assert hasattr(AsyncMemory, attribute)


def test_async_memory_takes_what_memory_takes(home):
    with pytest.raises(TypeError):
        AsyncMemory(home, colour="red")
    given = inspect.signature(AsyncMemory).parameters
    assert set(given) in ({"args", "kwargs"}, set(inspect.signature(Memory).parameters))


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_keyword_argument_is_a_type_error_for_every_verb(memory, home, verb):
    with pytest.raises(TypeError):
        getattr(memory, verb)(*ARGUMENTS.get(verb, ()), colour="red")
    assert not home.exists()


@pytest.mark.parametrize("verb", FILE_VERBS)
def test_an_unknown_keyword_argument_is_a_type_error_for_every_file_verb(memory, home, verb):
    with pytest.raises(TypeError):
        getattr(memory.files, verb)(*FILE_ARGUMENTS[verb], colour="red")
    assert not home.exists()


def test_an_unknown_keyword_argument_is_a_type_error_for_memory_itself(home):
    with pytest.raises(TypeError):
        Memory(home, colour="red")
    assert not home.exists()


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_says_what_it_does_and_what_it_takes(verb):
    function = getattr(Memory, verb)
    assert function.__doc__
    assert all(
        parameter.annotation is not inspect.Parameter.empty
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "self"
    )


# --- errors -----------------------------------------------------------------------------------------------------------

ERRORS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, HoldfastError)]


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_each_error_is_in_the_front_door_knows_its_codes_and_travels(kind):
    assert getattr(holdfast, kind.__name__) is kind
    assert kind.exit_code in (1, 2, 3, 4, 5)
    assert 400 <= kind.http_status < 600
    error = kind("what happened", "What to do")
    assert str(error) == "what happened. What to do"
    assert error.as_dict()["message"] == "what happened"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.message, again.fix) == (kind, "what happened", "What to do")


def test_the_tree_at_the_top_of_the_errors_is_the_tree_there_is():
    drawn = re.findall(r"^[│ ]*[├└]── (\w+) +(\d) +(\d{3})", errors.__doc__, re.MULTILINE)
    assert {(name, int(code), int(status)) for name, code, status in drawn} == {
        (kind.__name__, kind.exit_code, kind.http_status) for kind in ERRORS if kind is not HoldfastError
    }


# --- opening it -------------------------------------------------------------------------------------------------------


def test_memory_without_an_argument_works_offline_at_once(child, tmp_path):
    told = child(
        """
        import socket
        def refused(*args, **kwargs):
            raise AssertionError("a socket was opened")
        socket.socket = socket.create_connection = socket.getaddrinfo = refused
        sys.addaudithook(lambda event, _: refused() if event.startswith("socket.") else None)
        from holdfast import Memory
        memory = Memory()
        memory.store("the harbour opens at six")
        found = [hit.text for hit in memory.recall("harbour")]
        answer = [memory.home, found, memory.brief().text != "", len(memory.check())]
        """,
        HOME=str(tmp_path),
    )
    assert told == [str(tmp_path / ".holdfast"), ["the harbour opens at six"], True, 0]


def test_the_environment_names_the_home(child, tmp_path):
    told = child(
        "answer = Memory().store('text', key='k').note.path and Memory().home",
        HOLDFAST_HOME=str(tmp_path / "elsewhere"),
    )
    assert told == str(tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere" / "shelf").is_dir()


def test_an_empty_home_directory_is_none_and_the_password_database_knows_it(tmp_path, monkeypatch):
    user = pwd.getpwuid(os.getuid()).pw_dir
    for environment in ({"HOME": ""}, {}, {"HOME": "", "HOLDFAST_HOME": ""}):
        assert config.find_home(None, environment) == os.path.join(user, ".holdfast")
    assert config.find_home(None, {"HOME": str(tmp_path)}) == str(tmp_path / ".holdfast")

    def nobody(_):
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    for environment in ({"HOME": ""}, {}, {"HOME": "relative"}):
        with pytest.raises(ConfigError, match="HOLDFAST_HOME"):
            config.find_home(None, environment)


def test_a_relative_home_in_a_folder_that_is_gone_is_an_error_with_a_fix(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match="full path"):
        Memory("home")


def test_making_a_memory_touches_nothing(home, tmp_path):
    memory = Memory(home, cwd=tmp_path)
    memory.files
    memory.project
    memory.close()
    assert not home.exists()


def test_a_home_may_be_a_text_or_a_path_with_any_characters(open_memory, tmp_path):
    for name in ("plain", "with space", "Größe 日本", "per%20cent?x=1#y", "quo'te\"", "-dash"):
        for home in (tmp_path / name, str(tmp_path / name)):
            memory = open_memory(home=home)
            memory.store("harbour words", key="k")
            assert len(open_memory(home=home).recall("harbour", mode="keyword")) == 1
            assert memory.check() == []


def test_an_answer_is_plain_data_all_the_way_down(memory):
    import json

    memory.store("harbour words", key="k", tags="a")
    for answer in (
        memory.recall("harbour"),
        memory.get("k"),
        memory.history("k")[0],
        memory.fact("a", "b", "c"),
        memory.facts("a")[0],
        memory.graph("a"),
        memory.log([{"role": "user", "text": "words"}], session="s"),
        memory.expand("projects/demo/transcripts/unknown/s.jsonl:2")[0],
        memory.brief(),
        memory.status(),
        memory.search("harbour")[0],
        memory.read("x.md"),
        memory.reindex(),
        memory.forget("k"),
        memory.restore("k").replace(text="x"),
        memory.purge("k"),
    ):
        assert json.loads(json.dumps(answer.as_dict()))
        with pytest.raises(AttributeError):
            answer.key = "changed"


def test_a_memory_is_not_pickled_or_copied_and_says_what_to_do(memory):
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="let each open its own"):
            way(memory)


@pytest.mark.parametrize("query", [5, b"x", None, ["harbour"]])
def test_a_query_that_is_no_text_is_named(memory, query):
    with pytest.raises(UsageError, match="must be a string"):
        memory.recall(query)


def test_a_tag_that_is_no_word_is_refused(memory):
    with pytest.raises(UsageError, match="must be a string"):
        memory.store("text", tags=[None])
    assert memory.store("text", tags=[2026, "port"]).note.tags == ("2026", "port")


def test_every_interface_passes_on_all_options_of_recall():
    parameters = inspect.signature(Memory.recall).parameters
    assert tuple(parameters)[2:] == RECALL_OPTIONS
    assert set(RECALL_OPTIONS) <= set(Recall.__struct_fields__)
