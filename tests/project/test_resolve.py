"""Resolving the project of a folder: real repositories, moves, clones and copies."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast import config
from holdfast.base.ids import is_name
from holdfast.errors import Conflict, DiskTrouble, HoldfastError, InvalidKey, NoScope
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.project.git import normalize_url
from holdfast.project.marker import read_marker, write_marker
from holdfast.project.resolve import Project, find_candidates, resolve_project

NOW = "2026-04-16T10:30:00Z"
URL = "https://git.example.com/team/app.git"


class World:
    """A home with its ledger, folders with git in them, and the projects that have notes."""

    def __init__(self, tmp: Path) -> None:
        self.tmp = tmp
        self.home = tmp / "home"
        self.ledger = SqliteLedger(str(self.home), lock_seconds=5)
        self.noted: set[str] = set()
        self.seconds = int(time.time()) - 1000  # so that no two repositories start in the same second by chance
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "GIT_TERMINAL_PROMPT": "0",
            **{f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }

    def git(self, folder: Path, *args: str, at: int | None = None) -> str:
        dates = {"GIT_AUTHOR_DATE": f"@{at} +0000", "GIT_COMMITTER_DATE": f"@{at} +0000"} if at else {}
        command = ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *args]
        done = subprocess.run(command, cwd=folder, env=self.env | dates, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def repository(self, name: str, url: str | None = None, commit: bool = True, at: int | None = None) -> Path:
        folder = self.tmp / name
        folder.mkdir(parents=True)
        self.git(folder, "init", "-q")
        self.seconds += 1
        if commit:
            self.git(folder, "commit", "-q", "--allow-empty", "-m", "begin", at=at or self.seconds)
        if url:
            self.git(folder, "remote", "add", "origin", url)
        return folder

    def clone(self, of: str, name: str) -> Path:
        self.git(self.tmp, "clone", "-q", str(self.tmp / of), name)
        return self.tmp / name

    def resolve(self, folder: Path, **options: bool) -> Project:
        return resolve_project(find_candidates(str(folder), None, **options), self.ledger.projects, self.noted.__contains__)

    def store(self, folder: Path, **options: bool) -> str:
        """Resolve a project and give it notes, as a store does."""
        project = self.resolve(folder, **options)
        self.noted.add(project.id)
        return project.id


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.ledger.close()


# ── the order of P1 ──


@pytest.mark.promise("P1")
def test_an_override_is_taken_as_it_is_and_remembers_nothing(world):
    folder = world.repository("app", URL)
    found = find_candidates(str(folder), "My.Project_1-x", False)
    assert resolve_project(found, world.ledger.projects, world.noted.__contains__) == Project("My.Project_1-x", (), "override")
    assert not world.home.exists()


@pytest.mark.promise("P1")
@pytest.mark.parametrize(
    "bad", ["", ".", "..", ".hidden", "a/b", "a b", "a\n", "a\0", "ü", "x" * 129, "../../etc", "a%2fb", "\ud800"]
)
def test_an_override_that_breaks_the_rule_is_rejected(tmp_path, bad):
    with pytest.raises(InvalidKey) as refusal:
        find_candidates(str(tmp_path), bad, False)
    assert refusal.value.fix


@pytest.mark.promise("P1")
def test_an_override_of_the_full_length_is_accepted(tmp_path):
    assert find_candidates(str(tmp_path), "x" * 128, False).override == "x" * 128


@pytest.mark.promise("P1")
def test_the_remote_comes_before_the_marker_and_the_marker_before_the_path(world):
    folder = world.repository("app")
    by_path = world.resolve(folder)
    assert (by_path.how, by_path.id) == ("path", find_candidates(str(folder)).path)
    marker = write_marker(str(folder), world.ledger.projects, NOW)
    assert world.resolve(folder) == Project(marker, (), "marker")
    world.git(folder, "remote", "add", "origin", URL)
    by_remote = world.resolve(folder)
    assert by_remote.how == "remote"
    assert by_remote.id not in (marker, by_path.id)


@pytest.mark.promise("P1")
def test_any_folder_below_the_root_is_the_same_project(world):
    folder = world.repository("app", URL)
    deep = folder / "src" / "deep"
    deep.mkdir(parents=True)
    assert world.resolve(deep) == world.resolve(folder) == world.resolve(folder / ".git" / "hooks")
    assert find_candidates(str(deep)).root == str(folder)


@pytest.mark.promise("P1")
def test_a_link_to_a_folder_is_that_folder(world):
    plain = world.tmp / "plain"
    plain.mkdir()
    (world.tmp / "other-name").symlink_to(plain)
    assert world.resolve(world.tmp / "other-name") == world.resolve(plain)


@pytest.mark.promise("P1")
def test_folders_without_git_are_projects_of_their_own(world):
    for name in ("one", "two"):
        (world.tmp / name).mkdir()
    one, two = (world.store(world.tmp / name) for name in ("one", "two"))
    assert one != two
    assert one.startswith("one-")


@pytest.mark.promise("P1")
def test_every_id_can_be_the_name_of_a_folder(world):
    for name in ("Ünï çode", "漢字", "🙂", "a" * 200, "-x-", "..x", os.fsdecode(b"\xff\xfe")):
        folder = world.tmp / name
        folder.mkdir()
        assert is_name(find_candidates(str(folder)).path), name
        assert is_name(world.resolve(folder).id)


SAME = [
    "https://github.com/Owner/Repo.git",
    "https://github.com/owner/repo",
    "http://GITHUB.com:80/owner/repo/",
    "https://someone:secret@github.com:443/owner//repo.git/",
    "https://x-access-token:ghp_secret@github.com/owner/repo?access_token=secret#readme",
    "ssh://git@github.com/owner/repo.git",
    "ssh://git@github.com:22/owner/repo.git",
    "ssh://git@ssh.github.com:443/owner/repo.git",
    "git+ssh://git@github.com/owner/repo",
    "git://github.com:9418/owner/repo.git",
    "git@github.com:owner/repo.git",
    "git@github.com:/owner/repo",
    "github.com:owner/repo",
    "git@[github.com]:owner/repo",
    "HTTPS://www.github.com/OWNER/REPO.GIT",
]


@pytest.mark.promise("P1")
def test_all_spellings_of_one_remote_are_one_project(world):
    folder = world.repository("app", SAME[0])
    ids = set()
    for url in SAME:
        world.git(folder, "remote", "set-url", "origin", url)
        ids.add(find_candidates(str(folder)).remote)
    (id,) = ids
    assert id.startswith("repo-")


@pytest.mark.promise("P1")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://git.example.com/Team/App", "https://git.example.com/team/app"),
        ("https://git.example.com/team/app", "https://git.example.com:8443/team/app"),
        ("https://git.example.com/team/app", "https://git.example.org/team/app"),
        ("https://git.example.com/team/app", "https://git.example.com/other/app"),
        ("ssh://git@host:443/app", "ssh://git@host/app"),
        ("/srv/app", "host:srv/app"),
        ("ext::one program", "ext::another program"),
    ],
)
def test_different_remotes_are_different_projects(one, other):
    assert normalize_url(one, "/base") != normalize_url(other, "/base")


@pytest.mark.promise("P1")
def test_ports_and_addresses_in_brackets_are_understood():
    assert normalize_url("ssh://git@[::1]:22/x/y.git", "/") == normalize_url("git@[::1]:x/y", "/")
    assert normalize_url("[git.example.com:2222]:x/y", "/") == normalize_url("ssh://git.example.com:2222/x/y", "/")


@pytest.mark.promise("P1")
def test_a_remote_that_is_a_folder_counts_by_its_real_path(tmp_path):
    (tmp_path / "real.git").mkdir()
    (tmp_path / "link.git").symlink_to(tmp_path / "real.git")
    here = str(tmp_path / "work")
    wanted = (f"{tmp_path}/real", "real")
    for url in (f"{tmp_path}/real.git", f"{tmp_path}/link.git/", f"file://{tmp_path}/real.git", "../link.git"):
        assert normalize_url(url, here) == wanted, url


@pytest.mark.promise("P1")
@pytest.mark.parametrize(
    "url",
    [
        "https://user:s3cr3t@git.example.com/app.git",
        "https://s3cr3t@git.example.com",
        "https://user:s3/s3cr3t@git.example.com",
        "user:s3cr3t@git.example.com:app",
        "ext::sh -c 'fetch s3cr3t'",
        "helper::https://user:s3cr3t@git.example.com/app",
        "https://git.example.com/app?private_token=s3cr3t",
        "https://git.example.com/app#s3cr3t",
    ],
)
def test_the_raw_url_is_kept_nowhere(world, url):
    folder = world.repository("app", url)
    world.store(folder)
    world.ledger.projects.put_location("x", "y", "z")
    found = find_candidates(str(folder))
    assert "s3cr3t" not in repr(found)
    kept = b"".join(path.read_bytes() for path in world.home.rglob("*") if path.is_file())
    assert b"s3cr3t" not in kept
    assert b"git.example.com" not in kept


@pytest.mark.promise("P1")
def test_origin_is_preferred_and_otherwise_the_first_by_name(world):
    folder = world.repository("app")
    world.git(folder, "remote", "add", "zeta", "https://git.example.com/z")
    world.git(folder, "remote", "add", "alpha", "https://git.example.com/a")
    assert find_candidates(str(folder)).remote.startswith("a-")
    world.git(folder, "remote", "add", "origin", "https://git.example.com/o")
    assert find_candidates(str(folder)).remote.startswith("o-")


CONFIGS = {
    'quotes': '[remote "origin"]\n\turl = "https://git.example.com/team/app.git"\n',
    'comment after': '[remote "origin"]\n\turl = https://git.example.com/team/app.git ; mine\n',
    'comment before': '# [remote "origin"]\n; url = x\n[remote "origin"]\n#url = y\nurl=https://git.example.com/team/app\n',
    'one line': '[remote "origin"] url = https://git.example.com/team/app',
    'upper case': '[REMOTE "origin"]\nURL = https://git.example.com/team/app\n',
    'old style': '[remote.origin]\nurl = https://git.example.com/team/app\n',
    'continued': '[remote "origin"]\nurl = https://git.example.com/\\\nteam/app\n',
    'escaped': '[remote "origin"]\nurl = https://git.example.com/team/"a"p\\\np\n',
    'windows': '[remote "origin"]\r\n\turl = https://git.example.com/team/app.git\r\n',
    'several urls': '[remote "origin"]\nurl = https://git.example.com/team/app\nurl = https://elsewhere/x\n',
    'rewrites': '[url "x"]\ninsteadOf=https\n[remote "origin"]\nurl = https://git.example.com/team/app\npushurl = y\n',
    'comment ends in a backslash': '# c:\\\n[remote "origin"]\nurl = https://git.example.com/team/app\n',
}  # fmt: skip


@pytest.mark.promise("P1")
@pytest.mark.parametrize("how", CONFIGS)
def test_a_config_is_read_as_git_reads_it(world, how):
    folder = world.repository("app", URL)
    expected = find_candidates(str(folder)).remote
    (folder / ".git" / "config").write_bytes(CONFIGS[how].encode())
    assert world.git(folder, "config", "--get-all", "remote.origin.url").startswith("https://git.example.com/team/app")
    assert find_candidates(str(folder)).remote == expected


@pytest.mark.promise("P1")
def test_a_remote_with_an_odd_name_is_found(world):
    folder = world.repository("app")
    (folder / ".git" / "config").write_text(f'[remote "a\\"b ] c"]\n\turl = {URL}\n')
    assert find_candidates(str(folder)).remote.startswith("app-")


# ── tolerance ──


@pytest.mark.promise("P1")
@pytest.mark.parametrize(
    "config",
    [
        b"",
        b"\0" * 5000,
        bytes(range(256)) * 40,
        b"[remote",
        b'[remote "origin',
        b'[remote "origin"]\nurl',
        b'[remote "origin"]\nurl =\n',
        b'[remote "origin"]\nurl = "',
        b'[remote "origin"]\nurl = \\',
        b'[remote "origin"]\nurl = ://\n',
        b'[remote "origin"]\nurl = :\n',
        b'[remote ""]\nurl = x\n',
        b"[" * 100_000,
        b'[remote "origin"]\nurl = ' + b"ab\\\n" * 200_000,
        b'[remote "origin"]\nurl = ' + b"a::" * 200_000 + b"://",
        b'[remote "origin"]\nurl = ' + b"//" * 200_000 + b"\0x",
        b'[remote "origin"]\nurl = ../\0/\xff\n',
    ],
    ids=range(17),
)
def test_a_hostile_config_is_survived(world, config):
    folder = world.repository("app")
    (folder / ".git" / "config").write_bytes(config)
    project = world.resolve(folder)
    assert is_name(project.id)


@pytest.mark.promise("P1")
def test_a_config_that_cannot_be_read_falls_through(world):
    folder = world.repository("app", URL)
    config = folder / ".git" / "config"
    config.unlink()
    config.mkdir()
    assert find_candidates(str(folder)).remote is None
    config.rmdir()
    os.mkfifo(config)
    assert find_candidates(str(folder)).remote is None
    config.unlink()
    config.symlink_to(config)
    assert find_candidates(str(folder)).remote is None
    assert world.resolve(folder).how == "path"


@pytest.mark.promise("P1")
@pytest.mark.parametrize(
    "pointer", [b"", b"garbage", b"\0\xff" * 99, b"gitdir:", b"gitdir: /nowhere/at/all", b"gitdir: \0", b"gitdir: .git"]
)
def test_a_git_file_that_leads_nowhere_still_ends_the_search(world, pointer):
    outer = world.repository("outer", URL)
    inner = outer / "inner"
    inner.mkdir()
    (inner / ".git").write_bytes(pointer)
    found = find_candidates(str(inner))
    assert (found.root, found.remote, found.checkout) == (str(inner), None, None)
    assert world.resolve(inner).id != world.resolve(outer).id


@pytest.mark.promise("P1")
def test_what_only_looks_like_git_is_passed_over(world):
    outer = world.repository("outer", URL)
    for name, make in {
        "empty": lambda path: path.mkdir(),
        "pipe": os.mkfifo,
        "loop": lambda path: path.symlink_to(path),
        "dangling": lambda path: path.symlink_to("/nowhere/at/all"),
    }.items():
        (outer / name).mkdir()
        make(outer / name / ".git")
        assert find_candidates(str(outer / name)).root == str(outer), name


@pytest.mark.promise("P1")
def test_a_commondir_that_leads_nowhere_falls_through(world):
    folder = world.repository("app", URL)
    for content in (b"", b"\0", b"/nowhere/at/all", b"commondir"):
        (folder / ".git" / "commondir").write_bytes(content)
        found = find_candidates(str(folder))
        assert (found.root, found.remote) == (str(folder), None)


@pytest.mark.promise("P1")
@pytest.mark.parametrize("cwd", ["/nowhere/at/all", "\0", "/a\0b", "", ".", "\ud800", "/" + "x/" * 3000, "/" + "y" * 5000])
def test_a_strange_folder_still_gives_an_id(world, cwd):
    project = resolve_project(find_candidates(cwd), world.ledger.projects, world.noted.__contains__)
    assert is_name(project.id)


@pytest.mark.promise("P1")
def test_a_folder_that_was_removed_belongs_to_no_project(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(NoScope):
        find_candidates(".")
    assert find_candidates(".", "named").override == "named"


def test_nothing_heavy_is_imported_to_find_a_project(world):
    folder = world.repository("app", URL)
    code = """
import sys
before = set(sys.modules)
from holdfast.project.resolve import find_candidates, resolve_project
find_candidates(sys.argv[1])
heavy = {"json", "subprocess", "pathlib", "hashlib", "typing", "logging", "dataclasses"}
print(sorted(heavy & (set(sys.modules) - before)))
"""
    done = subprocess.run([sys.executable, "-I", "-c", code, folder], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ── P2: worktrees, clones, and memory that moves along ──


@pytest.mark.promise("P2")
def test_clones_of_one_remote_share_a_project(world):
    source = world.repository("source")
    for name in ("one", "two"):
        world.git(world.tmp, "clone", "-q", str(source), name)
    one, two = world.tmp / "one", world.tmp / "two"
    assert find_candidates(str(one)).cloned
    assert world.store(one) == world.store(two)


@pytest.mark.promise("P2")
def test_a_clone_of_a_folder_shares_with_the_folder_itself(world):
    source = world.repository("source")
    id = world.store(source)
    world.git(world.tmp, "clone", "-q", str(source), "copy")
    assert world.resolve(world.tmp / "copy").id == id


@pytest.mark.promise("P2")
@pytest.mark.parametrize("url", [URL, None])
@pytest.mark.parametrize("first", ["app", "tree"])
def test_worktrees_share_a_project(world, url, first):
    folder = world.repository("app", url)
    tree = world.tmp / "tree"
    world.git(folder, "worktree", "add", "-q", str(tree), "-b", "feature")
    id = world.store(world.tmp / first)
    assert world.resolve(folder).id == world.resolve(tree).id == id
    assert find_candidates(str(tree)).root == str(tree)


@pytest.mark.promise("P2")
@pytest.mark.parametrize("url", [URL, None])
def test_isolated_worktrees_have_a_project_each_and_the_main_checkout_keeps_the_shared_one(world, url):
    folder = world.repository("app", url)
    shared = world.store(folder)
    trees = [world.tmp / "one", world.tmp / "two"]
    for tree in trees:
        world.git(folder, "worktree", "add", "-q", str(tree), "-b", f"branch-{tree.name}")
    one, two = (world.store(tree, isolate_worktrees=True) for tree in trees)
    assert len({shared, one, two}) == 3
    assert world.resolve(folder, isolate_worktrees=True) == Project(shared, (), "remote" if url else "path")
    assert world.resolve(trees[0], isolate_worktrees=True).aliases == ()
    assert world.resolve(trees[0]).id == shared


@pytest.mark.promise("P2")
def test_an_isolated_worktree_keeps_its_project_when_it_or_its_repository_moves(world):
    folder = world.repository("app", URL)
    tree = world.tmp / "tree"
    world.git(folder, "worktree", "add", "-q", str(tree), "-b", "feature")
    id = world.store(tree, isolate_worktrees=True)
    world.git(folder, "worktree", "move", str(tree), str(world.tmp / "moved-tree"))
    assert world.resolve(world.tmp / "moved-tree", isolate_worktrees=True).id == id
    folder.rename(world.tmp / "moved-app")
    world.git(world.tmp / "moved-app", "worktree", "repair", str(world.tmp / "moved-tree"))
    assert world.resolve(world.tmp / "moved-tree", isolate_worktrees=True).id == id


@pytest.mark.promise("P2")
def test_worktrees_of_a_bare_repository_share_a_project(world):
    source = world.repository("source")
    (world.tmp / "hub").mkdir()
    world.git(world.tmp / "hub", "clone", "-q", "--bare", str(source), ".bare")
    (world.tmp / "hub" / ".git").write_text("gitdir: ./.bare\n")
    for branch in ("one", "two"):
        world.git(world.tmp / "hub", "worktree", "add", "-q", branch, "-b", branch)
    one, two = world.tmp / "hub" / "one", world.tmp / "hub" / "two"
    assert world.store(one) == world.store(two) == world.store(world.tmp / "hub")
    assert world.store(one, isolate_worktrees=True) != world.store(two, isolate_worktrees=True)


@pytest.mark.promise("P2")
def test_a_submodule_is_a_project_of_its_own(world):
    library = world.repository("library")
    folder = world.repository("app", URL)
    world.git(folder, "submodule", "--quiet", "add", str(library), "vendored")
    inner, outer = find_candidates(str(folder / "vendored")), find_candidates(str(folder))
    assert inner.root == str(folder / "vendored")
    assert inner.remote.startswith("library-")
    assert world.store(folder / "vendored") != world.store(folder)
    assert inner.checkout != outer.checkout


@pytest.mark.promise("P2")
def test_a_repository_that_gains_a_remote_keeps_its_memory(world):
    folder = world.repository("app")
    id = world.store(folder)
    world.git(folder, "remote", "add", "origin", URL)
    assert world.resolve(folder) == Project(id, (), "remote")
    elsewhere = world.repository("another-clone", URL)
    assert world.resolve(elsewhere).id == id


@pytest.mark.promise("P2")
def test_a_folder_that_gains_git_commits_and_a_remote_keeps_its_memory(world):
    folder = world.tmp / "app"
    folder.mkdir()
    id = world.store(folder)
    world.git(folder, "init", "-q")
    assert world.resolve(folder).id == id
    world.git(folder, "remote", "add", "origin", URL)
    world.git(folder, "commit", "-q", "--allow-empty", "-m", "begin")
    assert world.resolve(folder).id == id
    assert world.resolve(folder).id == id


@pytest.mark.promise("P2")
def test_a_remote_that_is_renamed_keeps_its_memory_for_every_clone(world):
    folder = world.repository("app", URL)
    id = world.store(folder)
    for number in range(3):
        world.git(folder, "remote", "set-url", "origin", f"https://git.example.com/team/renamed-{number}")
        assert world.resolve(folder).id == id
    elsewhere = world.repository("another-clone", "git@git.example.com:team/renamed-1.git")
    assert world.resolve(elsewhere).id == id


@pytest.mark.promise("P2", "N8")
@pytest.mark.parametrize("faded", [False, True])
def test_a_clone_that_gets_a_remote_of_its_own_writes_there_and_still_reads_the_old(world, faded):
    world.repository("template")
    first, second = (world.clone("template", name) for name in ("first", "second"))
    old = world.store(first)
    world.resolve(first)
    if faded:
        world.git(first, "reflog", "expire", "--all", "--expire=now")
    olds = [old]
    for number in range(3):
        world.git(first, "remote", "set-url", "origin", f"https://git.example.com/team/own-{number}")
        own = world.resolve(first)
        assert own.id not in olds and sorted(own.aliases) == sorted(olds)
        assert world.store(first) == own.id
        assert world.resolve(first) == own
        olds.append(own.id)
    assert world.resolve(second) == Project(old, (), "remote")
    assert world.resolve(world.clone("template", "third")) == Project(old, (), "remote")
    moved = first.rename(world.tmp / "moved")
    assert world.resolve(moved).id == olds[-1] and sorted(world.resolve(moved).aliases) == sorted(olds[:-1])
    world.git(moved, "remote", "remove", "origin")
    assert world.resolve(moved).id == olds[-1]
    refuse_writes(world.ledger)
    world.resolve(moved)


@pytest.mark.promise("P2")
def test_a_remote_that_is_removed_keeps_its_memory(world):
    folder = world.repository("app", URL)
    id = world.store(folder)
    world.git(folder, "remote", "remove", "origin")
    assert world.resolve(folder) == Project(id, (), "path")


@pytest.mark.promise("P2")
def test_a_repository_without_a_remote_keeps_its_memory_when_it_moves(world):
    folder = world.repository("app")
    id = world.store(folder)
    for name in ("moved", "deep/moved/again"):
        (world.tmp / name).parent.mkdir(parents=True, exist_ok=True)
        folder = folder.rename(world.tmp / name)
        assert world.resolve(folder) == Project(id, (), "path")


@pytest.mark.promise("P2")
def test_a_repository_that_moved_and_was_renamed_at_once_keeps_its_memory(world):
    folder = world.repository("app", URL)
    id = world.store(folder)
    folder = folder.rename(world.tmp / "moved")
    world.git(folder, "remote", "set-url", "origin", "https://git.example.com/team/renamed")
    assert world.resolve(folder).id == id


@pytest.mark.promise("P2")
def test_memory_survives_the_fading_of_the_reflog(world):
    long_ago = 1_500_000_000
    folder = world.repository("app", URL, at=long_ago)
    world.git(folder, "commit", "-q", "--allow-empty", "-m", "more")
    id = world.store(folder)
    before = find_candidates(str(folder))
    world.git(folder, "reflog", "expire", "--all", "--expire=90.days")
    after = find_candidates(str(folder))
    assert before.checkout != after.checkout
    assert (before.cloned, after.cloned) == (False, True)
    assert world.resolve(folder).id == id
    world.git(folder, "remote", "set-url", "origin", "https://git.example.com/team/renamed")
    assert world.resolve(folder).id == id
    world.git(folder, "reflog", "expire", "--all", "--expire=now")
    assert find_candidates(str(folder)).checkout is None
    assert world.resolve(folder).id == id


@pytest.mark.promise("P2")
def test_when_old_and_new_id_both_have_memory_reads_cover_both(world):
    folder, elsewhere = world.repository("app"), world.repository("another-clone", URL)
    old, new = world.store(folder), world.store(elsewhere)
    world.git(folder, "remote", "add", "origin", URL)
    assert world.resolve(folder) == Project(new, (old,), "remote")
    assert world.resolve(folder) == Project(new, (old,), "remote")
    assert world.resolve(elsewhere) == Project(new, (), "remote")


@pytest.mark.promise("P2")
def test_a_project_resolved_before_it_had_notes_can_still_be_renamed(world):
    folder = world.repository("app")
    world.resolve(folder)  # as a recall does: nothing is stored yet
    world.git(folder, "remote", "add", "origin", URL)
    id = world.store(folder)
    world.git(folder, "remote", "set-url", "origin", "https://git.example.com/team/renamed")
    assert world.resolve(folder).id == id


@pytest.mark.promise("P2")
def test_resolving_again_writes_nothing(world):
    folders = [
        world.repository("by-remote", URL),
        world.repository("by-path"),
        world.repository("marked"),
        world.tmp / "plain",
    ]
    folders[3].mkdir()
    write_marker(str(folders[2]), world.ledger.projects, NOW)
    for folder in folders:
        world.store(folder)
        world.resolve(folder)
    refuse_writes(world.ledger)
    for folder in folders:
        world.resolve(folder)


def refuse_writes(ledger: SqliteLedger) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("written")

    ledger.projects.link = ledger.projects.put_location = refuse


@pytest.mark.promise("P2")
def test_a_home_that_cannot_be_written_to_still_resolves(world):
    folder = world.repository("app")
    id = world.store(folder)
    world.git(folder, "remote", "add", "origin", URL)

    def full(*_: object, **__: object) -> None:
        raise DiskTrouble("full", "Free some space")

    world.ledger.projects.link = world.ledger.projects.put_location = full
    assert world.resolve(folder) == Project(id, (), "remote")


@pytest.mark.promise("P2")
def test_resolving_can_be_told_to_remember_nothing(world):
    folder = world.repository("app", URL)
    project = resolve_project(find_candidates(str(folder)), world.ledger.projects, world.noted.__contains__, remember=False)
    assert project.how == "remote"
    assert not world.home.exists()


# ── repositories that must not be mistaken for each other ──


@pytest.mark.promise("P2", "N8")
@pytest.mark.parametrize("old_url", [None, "https://git.example.com/team/old"])
def test_another_repository_cloned_to_a_deleted_path_sees_nothing_of_the_old(world, old_url):
    source = world.repository("source")
    folder = world.repository("app", old_url)
    old = world.store(folder)
    shutil.rmtree(folder)
    world.git(world.tmp, "clone", "-q", str(source), "app")
    new = world.resolve(folder)
    assert new.id != old
    assert new.aliases == ()
    world.noted.add(new.id)
    world.git(folder, "remote", "set-url", "origin", URL)
    assert world.resolve(folder).aliases == (new.id,)
    assert world.resolve(folder).id != old
    world.git(folder, "remote", "remove", "origin")
    assert world.resolve(folder) == Project(new.id, (), "path")


@pytest.mark.promise("P2", "N8")
def test_a_clone_at_a_deleted_path_stays_apart_when_its_reflog_fades(world):
    source = world.repository("source", at=1_500_000_000)
    folder = world.repository("app")
    old = world.store(folder)
    shutil.rmtree(folder)
    world.git(world.tmp, "clone", "-q", str(source), "app", at=1_500_000_000)
    world.git(folder, "commit", "-q", "--allow-empty", "-m", "more")
    new = world.store(folder)
    world.git(folder, "reflog", "expire", "--all", "--expire=90.days")
    assert world.resolve(folder) == Project(new, (), "remote")
    assert new != old


@pytest.mark.promise("P2", "N8")
@pytest.mark.parametrize("commit", [True, False])
def test_another_repository_made_at_a_deleted_path_with_a_remote_sees_nothing_of_the_old(world, commit):
    folder = world.repository("app")
    old = world.store(folder)
    shutil.rmtree(folder)
    world.repository("app", URL, commit=commit, at=1_700_000_000)
    new = world.resolve(folder)
    assert new.id != old
    assert new.aliases == ()


@pytest.mark.promise("P2", "N8")
def test_a_copy_of_a_repository_is_a_project_of_its_own_even_when_the_original_goes(world):
    folder = world.repository("app")
    id = world.store(folder)
    copy = world.tmp / "copy"
    shutil.copytree(folder, copy, symlinks=True)
    assert find_candidates(str(copy)).checkout == find_candidates(str(folder)).checkout
    own = world.store(copy)
    assert own != id
    assert world.resolve(folder).id == id
    shutil.rmtree(folder)
    assert world.resolve(copy) == Project(own, (), "path")


@pytest.mark.promise("P2", "N8")
def test_repositories_that_began_in_the_same_second_alike_stay_apart(world):
    one, two = (world.repository(f"{name}/app", at=1_700_000_000) for name in ("one", "two"))
    assert find_candidates(str(one)).checkout == find_candidates(str(two)).checkout
    first, second = world.store(one), world.store(two)
    assert first != second
    for folder, id in ((one, first), (two, second)):
        world.git(folder, "remote", "add", "origin", f"https://git.example.com/{folder.parent.name}")
        assert world.resolve(folder) == Project(id, (), "remote")


@pytest.mark.promise("P2")
def test_a_repository_that_moved_keeps_its_memory_though_another_took_its_place(world):
    folder = world.repository("app", URL)
    id = world.store(folder)
    moved = folder.rename(world.tmp / "app-old")
    world.repository("app", "https://git.example.com/team/other")
    world.git(moved, "remote", "remove", "origin")
    assert world.resolve(moved).id == id
    assert world.resolve(folder).id != id


@pytest.mark.promise("P2", "N8")
def test_unrelated_projects_never_get_each_others_aliases(world):
    folders = [world.repository(f"repo-{n}", f"https://git.example.com/{n}" if n % 2 else None) for n in range(6)]
    ids = [world.store(folder) for folder in folders]
    assert len(set(ids)) == 6
    assert [world.resolve(folder) for folder in folders] == [
        Project(id, (), "remote" if n % 2 else "path") for n, id in enumerate(ids)
    ]


# ── P3: the marker ──


def marker_file(folder: Path) -> Path:
    return folder / ".holdfast" / "project.json"


@pytest.fixture
def marked(world):
    folder = world.tmp / "marked"
    folder.mkdir()
    world.marker_id = write_marker(str(folder), world.ledger.projects, NOW)
    return folder


@pytest.mark.promise("P3")
def test_a_marker_is_private_complete_and_honoured(world, marked):
    said = json.loads(marker_file(marked).read_text())
    assert set(said) == {"id", "nonce", "created"}
    assert (said["id"], said["created"]) == (world.marker_id, NOW)
    assert len(said["nonce"]) == 32
    assert stat.S_IMODE(marker_file(marked).stat().st_mode) == 0o600
    assert stat.S_IMODE(marker_file(marked).parent.stat().st_mode) == 0o700
    assert os.listdir(marked / ".holdfast") == ["project.json"]
    (marked / "below").mkdir()
    assert world.resolve(marked / "below") == Project(world.marker_id, (), "marker")


@pytest.mark.promise("P3")
def test_the_mode_of_a_marker_does_not_depend_on_the_umask(world):
    folder = world.tmp / "wide"
    (folder / ".holdfast").mkdir(parents=True, mode=0o755)
    before = os.umask(0)
    try:
        write_marker(str(folder), world.ledger.projects, NOW)
    finally:
        os.umask(before)
    assert stat.S_IMODE(marker_file(folder).stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / ".holdfast").stat().st_mode) == 0o700


@pytest.mark.promise("P3")
def test_looking_at_a_folder_never_writes_a_marker(world):
    folder = world.repository("app")
    world.store(folder)
    world.resolve(folder)
    assert not (folder / ".holdfast").exists()


@pytest.mark.promise("P3")
def test_writing_a_marker_twice_keeps_the_first(world, marked):
    before = marker_file(marked).read_bytes()
    assert write_marker(str(marked), world.ledger.projects, "2027-01-01T00:00:00Z") == world.marker_id
    assert marker_file(marked).read_bytes() == before


@pytest.mark.promise("P3")
def test_a_folder_that_had_memory_before_its_marker_keeps_it(world):
    folder = world.tmp / "plain"
    folder.mkdir()
    id = world.store(folder)
    marker = write_marker(str(folder), world.ledger.projects, NOW)
    assert marker != id
    assert world.resolve(folder) == Project(id, (), "marker")
    assert world.resolve(folder.rename(world.tmp / "moved")) == Project(id, (), "marker")


@pytest.mark.promise("P3")
def test_a_marked_folder_that_moved_keeps_its_project_again_and_again(world, marked):
    world.store(marked)
    for name in ("first", "second"):
        marked = marked.rename(world.tmp / name)
        assert world.resolve(marked).id == world.marker_id
        assert world.ledger.projects.find_location(world.marker_id).path == str(marked)
    (world.tmp / "marked").mkdir()
    assert world.resolve(world.tmp / "marked").id != world.marker_id


@pytest.mark.promise("P3")
def test_a_copy_of_a_marked_folder_is_another_project_and_is_not_touched(world, marked):
    world.store(marked)
    copy = world.tmp / "copy"
    shutil.copytree(marked, copy)
    before = marker_file(copy).read_bytes()
    project = world.resolve(copy)
    assert project == Project(find_candidates(str(copy)).path, (), "path")
    assert project.id.startswith("copy-")
    (copy / "below").mkdir()
    assert world.resolve(copy / "below") == project
    assert world.resolve(marked).id == world.marker_id
    assert marker_file(copy).read_bytes() == before
    with pytest.raises(Conflict):
        write_marker(str(copy), world.ledger.projects, NOW)
    assert marker_file(copy).read_bytes() == before


@pytest.mark.promise("P3")
def test_a_moved_folder_is_known_though_an_unmarked_one_took_its_place(world, marked):
    world.store(marked)
    moved = marked.rename(world.tmp / "moved")
    marked.mkdir()
    assert world.resolve(moved).id == world.marker_id


@pytest.mark.promise("P3")
def test_a_marker_reached_by_another_name_of_the_folder_is_no_copy(world, marked):
    place = world.ledger.projects.find_location(world.marker_id)
    (world.tmp / "name").symlink_to(marked)
    world.ledger.projects.put_location(world.marker_id, place.nonce, str(world.tmp / "name"))
    assert world.resolve(marked).id == world.marker_id


@pytest.mark.promise("P3")
def test_a_marker_of_another_home_is_foreign(world, marked):
    stranger = SqliteLedger(str(world.tmp / "other-home"))
    project = resolve_project(find_candidates(str(marked)), stranger.projects, world.noted.__contains__)
    assert project == Project(find_candidates(str(marked)).path, (), "path")
    with pytest.raises(Conflict) as refusal:
        write_marker(str(marked), stranger.projects, NOW)
    assert refusal.value.fix
    stranger.close()


GOOD = {"id": "a-project", "nonce": "0123456789abcdef0123456789abcdef", "created": NOW}
CORRUPT = {
    "empty": b"",
    "not json": b"{",
    "not utf-8": b'{"id": "\xff"}',
    "a list": b"[]",
    "a number": b"1",
    "nested": b"[" * 4000,
    "no id": json.dumps({"nonce": "n", "created": NOW}).encode(),
    "id is a number": json.dumps(GOOD | {"id": 1}).encode(),
    "id climbs": json.dumps(GOOD | {"id": "../../etc"}).encode(),
    "id is hidden": json.dumps(GOOD | {"id": ".x"}).encode(),
    "id is long": json.dumps(GOOD | {"id": "x" * 129}).encode(),
    "id ends in a newline": json.dumps(GOOD | {"id": "a-project\n"}).encode(),
    "nonce is empty": json.dumps(GOOD | {"nonce": ""}).encode(),
    "nonce is null": json.dumps(GOOD | {"nonce": None}).encode(),
    "nonce is wrong": json.dumps(GOOD | {"nonce": "another"}).encode(),
    "no date": json.dumps({"id": "a-project", "nonce": GOOD["nonce"]}).encode(),
    "too large": json.dumps(GOOD).encode() + b" " * 4096,
}


@pytest.mark.promise("P3")
@pytest.mark.parametrize("how", CORRUPT)
def test_a_corrupt_marker_falls_through_to_the_path_and_is_not_touched(world, how):
    folder = world.tmp / "app"
    (folder / ".holdfast").mkdir(parents=True)
    marker_file(folder).write_bytes(CORRUPT[how])
    world.ledger.projects.put_location("a-project", GOOD["nonce"], str(folder))
    world.ledger.projects.put_location("empty-nonce", "", str(folder))
    assert world.resolve(folder) == Project(find_candidates(str(folder)).path, (), "path")
    assert marker_file(folder).read_bytes() == CORRUPT[how]
    with pytest.raises(Conflict):
        write_marker(str(folder), world.ledger.projects, NOW)
    assert marker_file(folder).read_bytes() == CORRUPT[how]


@pytest.mark.promise("P3")
def test_the_good_marker_of_the_corrupt_ones_would_be_honoured(world):
    folder = world.tmp / "app"
    (folder / ".holdfast").mkdir(parents=True)
    marker_file(folder).write_text(json.dumps(GOOD))
    world.ledger.projects.put_location("a-project", GOOD["nonce"], str(folder))
    assert world.resolve(folder) == Project("a-project", (), "marker")


@pytest.mark.promise("P3")
@pytest.mark.parametrize("what", ["symlink", "pipe", "folder", "linked folder", "dangling"])
def test_a_marker_that_is_no_plain_file_falls_through(world, marked, what):
    file = marker_file(marked)
    aside = world.tmp / "aside"
    if what == "linked folder":
        file.parent.rename(aside)
        file.parent.symlink_to(aside)
    else:
        file.rename(aside)
        {
            "symlink": lambda: file.symlink_to(aside),
            "pipe": lambda: os.mkfifo(file),
            "folder": file.mkdir,
            "dangling": lambda: file.symlink_to("/nowhere/at/all"),
        }[what]()
    assert read_marker(str(marked)) is None
    assert world.resolve(marked).how == "path"
    with pytest.raises(HoldfastError):
        write_marker(str(marked), world.ledger.projects, NOW)


@pytest.mark.promise("P3")
def test_the_search_for_a_marker_ends_at_the_root_of_the_repository(world, marked):
    inner = marked / "inner"
    inner.mkdir()
    world.git(inner, "init", "-q")
    assert find_candidates(str(inner)).marker is None
    (inner / "deep").mkdir()
    id = write_marker(str(inner / "deep"), world.ledger.projects, NOW)
    assert world.resolve(inner / "deep").id == id
    assert find_candidates(str(inner / "deep")).root == str(inner)
    assert world.resolve(inner).id != id


@pytest.mark.promise("P2", "P3")
def test_the_marker_of_the_main_checkout_holds_for_its_worktrees(world):
    folder = world.repository("app")
    id = write_marker(str(folder), world.ledger.projects, NOW)
    tree = world.tmp / "tree"
    world.git(folder, "worktree", "add", "-q", str(tree), "-b", "feature")
    assert world.resolve(tree).id == world.resolve(folder).id == id
    assert world.resolve(tree, isolate_worktrees=True).id != id


@pytest.mark.promise("P3")
def test_a_marker_that_is_committed_does_not_follow_into_clones(world):
    folder = world.repository("app")
    write_marker(str(folder), world.ledger.projects, NOW)
    world.git(folder, "add", ".holdfast")
    world.git(folder, "commit", "-q", "-m", "the marker too")
    world.git(world.tmp, "clone", "-q", str(folder), "clone")
    world.git(world.tmp / "clone", "remote", "remove", "origin")
    assert world.resolve(world.tmp / "clone").how == "path"


@pytest.mark.promise("P3")
def test_many_processes_that_mark_one_folder_agree(world):
    folder = world.tmp / "crowded"
    folder.mkdir()
    code = """
import sys
from holdfast.project.marker import write_marker
from holdfast.ledger.sqlite import SqliteLedger
sys.stdin.readline()
print(write_marker(sys.argv[1], SqliteLedger(sys.argv[2]).projects, "2026-04-16T10:30:00Z"))
"""
    command = [sys.executable, "-c", code, str(folder), str(world.home)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    crowd = [subprocess.Popen(command, text=True, **pipes) for _ in range(8)]
    results = [process.communicate("go\n", timeout=60) for process in crowd]
    assert [err for _, err in results if err] == []
    assert {out.strip() for out, _ in results} == {world.resolve(folder).id}
    assert os.listdir(folder / ".holdfast") == ["project.json"]


@pytest.mark.promise("P3")
def test_a_marker_is_written_where_there_are_no_hard_links(world, monkeypatch):
    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    folder = world.tmp / "plain"
    folder.mkdir()
    id = write_marker(str(folder), world.ledger.projects, NOW)
    assert world.resolve(folder).id == id
    assert os.listdir(folder / ".holdfast") == ["project.json"]


@pytest.mark.promise("P3")
def test_a_marker_that_cannot_be_written_is_trouble_with_a_name(world):
    with pytest.raises(DiskTrouble):
        write_marker(str(world.tmp / "nowhere"), world.ledger.projects, NOW)


def test_a_tilde_in_the_home_is_the_user_s_folder_also_where_no_shell_reads_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert config.find_home("~/mem") == str(tmp_path / "mem")
    assert config.find_home(None, {"HOLDFAST_HOME": "~/mem", "HOME": "/somewhere"}) == "/somewhere/mem"
