"""Reviews on GitHub through the gateway: posted once, whatever fails on the way (A6)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import apsw
import pytest
from github_server import TOKEN, GitHub
from wait import wait_until

from holdfast import Damaged, HoldfastError, Unreached, config
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.server import github as room
from holdfast.server.github import Wanted, review

REVIEW = {"owner": "acme", "repo": "shop", "pr_number": 7, "body": "Looks good.", "event": "APPROVE"}
AT_ONCE = (("Retry-After", "0"),)
PATH = "/repos/acme/shop/pulls/7/reviews"


@pytest.fixture
def github():
    one = GitHub()
    yield one
    one.close()


@pytest.fixture
def reviewer(gateway, github, monkeypatch):
    monkeypatch.setattr(room, "PAUSE", 0.01)
    (gateway.home / "config.toml").write_text(f'[github]\napi = "{github.url}"\ntoken = "{TOKEN}"\n')
    return gateway.agent("reviewer")


@pytest.mark.promise("A6", "A3")
def test_reviews_are_listed_with_what_was_done_to_their_agent_and_to_the_operator(gateway, github, reviewer):
    gateway.add_role("engineer", ["github.review", "done.read", "done.write"])
    mine, other, operator = gateway.agent("mine", "engineer"), gateway.agent("other", "engineer"), gateway.operator
    mine.post("/done", {"kind": "triage", "subject": "acme/shop#3"})
    for number in (7, 8):
        assert mine.post("/github/review", {**REVIEW, "pr_number": number}).status == 200
    listed = mine.get("/done?kind=github.review").json["done"]
    assert [(one["agent"], one["subject"]) for one in listed] == [("mine", "acme/shop#8"), ("mine", "acme/shop#7")]
    assert [one["kind"] for one in mine.get("/done").json["done"]] == ["github.review", "github.review", "triage"]
    pages, where = [], "/done?limit=1"
    while where:
        page = mine.get(where).json
        pages += [one["subject"] for one in page["done"]]
        where = page["next"] and f"/done?limit=1&cursor={page['next']}"
    assert pages == ["acme/shop#8", "acme/shop#7", "acme/shop#3"]
    asked = "/done/exists?kind=github.review&subject={}%23{}".format
    assert [mine.get(asked(*one)).json["exists"] for one in (("acme/shop", 7), ("ACME/Shop", 7), ("acme/shop", 9))] == [
        True, True, False
    ]  # fmt: skip
    assert len(mine.get("/done?kind=github.review&subject=acme/shop%237").json["done"]) == 1
    assert other.get("/done").json["done"] == [] and other.get(asked("acme/shop", 7)).json == {"exists": False}
    assert other.get("/done?agent=mine").status == 403 and other.get(asked("acme/shop", 7) + "&agent=mine").status == 403
    assert len(operator.get("/done").json["done"]) == 3 and operator.get(asked("acme/shop", 7)).json == {"exists": True}
    assert len(operator.get("/done?agent=mine").json["done"]) == 3 and operator.get("/done?agent=other").json["done"] == []
    assert operator.get("/done?cursor=7").status == 422
    denied = operator.get("/audit?agent=other&outcome=denied").json["audit"]
    assert {one["action"] for one in denied} == {"agents.manage"}


@pytest.mark.promise("A6")
def test_a_review_is_posted_and_recorded_once(gateway, github, reviewer):
    said = reviewer.post("/github/review", REVIEW)
    assert said.status == 200 and said.json["posted"] is True and said.json["review_id"] == 80
    kept = github.reviews[PATH][0]
    assert kept["event"] == "APPROVE" and kept["body"].startswith("Looks good.\n\n<!-- holdfast:review ")
    again = reviewer.post("/github/review", {**REVIEW, "owner": "ACME"})
    assert again.json["posted"] is False and again.json["reviewed_at"] == said.json["reviewed_at"]
    assert github.posts == 1
    rows, _ = gateway.gate.ledger.reviews.list()
    assert [(row.agent, row.owner, row.repo, row.pr_number) for row in rows] == [("reviewer", "acme", "shop", 7)]
    assert reviewer.post("/github/review", {**REVIEW, "again": True}).json["posted"] is True
    assert github.posts == 2 and len(gateway.gate.ledger.reviews.list()[0]) == 1
    assert gateway.agent("second").post("/github/review", REVIEW).json["posted"] is True


@pytest.mark.promise("A6")
def test_of_ten_who_ask_at_once_one_posts(github, reviewer):
    said = []
    threads = [threading.Thread(target=lambda: said.append(reviewer.post("/github/review", REVIEW))) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.status for one in said] == [200] * 10
    assert sorted(one.json["posted"] for one in said) == [False] * 9 + [True]
    assert github.posts == 1


@pytest.mark.promise("A6")
@pytest.mark.parametrize(
    ("plan", "status", "code", "retry"),
    [
        ([401], 502, "unreached", None),
        ([403], 502, "unreached", None),
        ([404], 404, "not_found", None),
        ([422], 422, "usage", None),
        ([(403, (("Retry-After", "77"),))], 429, "too_many", 77),
        ([(403, (("X-RateLimit-Remaining", "0"),))], 429, "too_many", 60),
        ([302], 502, "unreached", None),
    ],
)
def test_what_github_refuses_is_said_and_may_be_asked_again(github, reviewer, plan, status, code, retry):
    github.plan = list(plan)
    said = reviewer.post("/github/review", REVIEW)
    assert (said.status, said.code) == (status, code)
    assert retry is None or int(said.headers["retry-after"]) == retry
    assert github.posts == 1 and github.reviews == {}
    assert TOKEN not in said.data.decode()
    assert reviewer.post("/github/review", REVIEW).json["posted"] is True


@pytest.mark.promise("A6")
@pytest.mark.parametrize("plan", [[(429, AT_ONCE)], [(403, AT_ONCE), (429, AT_ONCE)]])
def test_what_surely_was_not_posted_is_tried_again(github, reviewer, plan):
    github.plan = list(plan)
    assert reviewer.post("/github/review", REVIEW).json["posted"] is True
    assert len(github.reviews[PATH]) == 1 and github.posts == len(plan) + 1


@pytest.mark.promise("A6")
@pytest.mark.parametrize("step", [500, 502, 503, "lost"])
def test_what_may_have_been_posted_is_sent_again_only_when_github_must_be_done_with_it(github, reviewer, monkeypatch, step):
    github.plan = [step]
    said = [reviewer.post("/github/review", REVIEW) for _ in range(3)]
    assert [(one.status, one.code) for one in said] == [(502, "unreached")] * 3
    assert github.posts == 1 and all(100 <= int(one.headers["retry-after"]) <= 120 for one in said)
    monkeypatch.setattr(room, "SETTLE", 0)
    assert reviewer.post("/github/review", REVIEW).json["posted"] is True
    assert len(github.reviews[PATH]) == 1 and github.posts == 2


@pytest.mark.promise("A6")
def test_a_server_that_takes_it_after_we_gave_up_has_one_review(github, reviewer, monkeypatch):
    monkeypatch.setattr(room, "SECONDS", 0.3)
    github.plan = ["late"]
    assert reviewer.post("/github/review", REVIEW).code == "unreached"
    assert reviewer.post("/github/review", {**REVIEW, "again": True}).code == "unreached"  # and no second one is posted
    github.commit.set()
    wait_until(lambda: PATH in github.reviews)
    assert reviewer.post("/github/review", REVIEW).json["posted"] is False
    assert github.posts == 1 and len(github.reviews[PATH]) == 1


@pytest.mark.promise("A6")
@pytest.mark.parametrize("how", ["drop", "slow"])
def test_what_was_posted_without_an_answer_is_found_and_not_posted_again(github, reviewer, monkeypatch, how):
    monkeypatch.setattr(room, "SECONDS", 0.3)
    for number in range(250):
        github.add_review(PATH, {"body": f"somebody else's {number}", "event": "COMMENT"})
    github.plan = [how]
    said = reviewer.post("/github/review", REVIEW)
    assert said.status == 200 and said.json["review_id"] == 330
    assert github.posts == 1 and github.lists == 6  # three pages before it was posted, and three after
    assert reviewer.post("/github/review", REVIEW).json["posted"] is False


@pytest.mark.promise("A6")
def test_while_nobody_can_say_nothing_is_posted_and_the_next_looks_first(github, reviewer):
    github.plan, github.good_lists, github.list_status = ["drop"], 1, 500
    said = reviewer.post("/github/review", REVIEW)
    assert (said.status, said.code) == (502, "unreached") and github.posts == 1
    assert reviewer.post("/github/review", REVIEW).status == 502 and github.posts == 1
    github.list_status = 200
    said = reviewer.post("/github/review", REVIEW)
    assert said.json["posted"] is False and said.json["review_id"] == 80
    assert github.posts == 1 and len(github.reviews[PATH]) == 1


@pytest.fixture
def settings(home, github, monkeypatch):
    monkeypatch.setattr(room, "PAUSE", 0.01)
    return config.load(home).replace(github_api=github.url, github_token=TOKEN)


@pytest.fixture
def ledger(home):
    one = SqliteLedger(str(home), 5)
    yield one
    one.close()


PLAIN = Wanted("acme", "shop", 7, "Looks good.")
AGAIN, KEYED = PLAIN.replace(again=True), PLAIN.replace(again=True, key="k")
DIES = """
import os, sys
from holdfast import config
from holdfast.server import github
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.ledger.done import Reviews
from holdfast.base.http_client import JsonClient
home, url, token, point, again, key = sys.argv[1:]
settings = config.load(home).replace(github_api=url, github_token=token)
die = lambda *_, **__: os._exit(9)
request = JsonClient.request
if point == "claim":
    Reviews.claim = die
elif point == "post":
    JsonClient.request = lambda self, method, *rest: die() if method == "POST" else request(self, method, *rest)
elif point == "record":
    Reviews.record = die
wanted = github.Wanted("acme", "shop", 7, "Looks good.", again=bool(again), key=key)
github.review(settings, SqliteLedger(home), "reviewer", wanted)
die()
"""


def died(settings, wanted, point):
    """Simulate a process that dies before this call; "finish" is after all calls."""
    given = [settings.home, settings.github_api, settings.github_token, point, "yes" if wanted.again else "", wanted.key]
    assert subprocess.run([sys.executable, "-c", DIES, *given], timeout=60).returncode == 9


@pytest.mark.promise("A6")
@pytest.mark.parametrize("point", ["claim", "post", "record", "finish"])
@pytest.mark.parametrize("wanted", [PLAIN, KEYED, AGAIN], ids=["plain", "with a key", "again"])
def test_wherever_its_process_dies_a_review_is_posted_once(settings, ledger, github, monkeypatch, wanted, point):
    died(settings, wanted, point)
    assert len(github.reviews.get(PATH, [])) == (point in ("record", "finish"))
    if point == "post":  # it cannot be known that it was not sent
        with pytest.raises(Unreached) as refused:
            review(settings, ledger, "reviewer", wanted)
        assert refused.value.retry_after > 100
        monkeypatch.setattr(room, "SETTLE", 0)
    if wanted is not AGAIN or point != "finish":  # a finished review without a key may be requested once more
        assert review(settings, ledger, "reviewer", wanted).posted is (point in ("claim", "post"))
    assert review(settings, ledger, "reviewer", PLAIN).posted is False
    assert len(github.reviews[PATH]) == 1 and ledger.reviews.find_claim("reviewer", "acme", "shop", 7) is None


@pytest.mark.promise("A6")
@pytest.mark.parametrize("wanted", [PLAIN, KEYED, AGAIN], ids=["plain", "with a key", "again"])
def test_who_dies_is_known_by_whoever_asks_plainly_and_with_another_token_for_github(settings, ledger, github, wanted):
    died(settings, wanted, "record")
    github.tokens.add("ghp_rotated")
    said = review(settings.replace(github_token="ghp_rotated"), ledger, "reviewer", PLAIN)
    assert said.posted is False and said.review_id == 80 and github.posts == 1
    assert ledger.reviews.exists("reviewer", "acme", "shop", 7)


@pytest.mark.promise("A6")
def test_who_is_killed_while_github_takes_it_posts_nothing_twice(settings, ledger, github):
    github.plan = ["slow"]
    given = [settings.home, settings.github_api, TOKEN, "", "", ""]
    child = subprocess.Popen([sys.executable, "-c", DIES, *given])
    wait_until(lambda: github.reviews or child.poll() is not None)
    child.send_signal(signal.SIGKILL)
    child.wait(60)
    said = review(settings, ledger, "reviewer", PLAIN)
    assert said.posted is False and said.review_id == 80 and github.posts == 1


@pytest.mark.promise("A6")
@pytest.mark.parametrize("wanted", [PLAIN, KEYED, AGAIN], ids=["plain", "with a key", "again"])
def test_what_is_posted_and_cannot_be_recorded_is_not_posted_again(settings, ledger, github, wanted):
    assert ledger.reviews.list() == ([], None)
    ledger.done.record("reviewer", "k", "makes the file", 1)
    stranger = apsw.Connection(os.path.join(settings.home, "ledger.db"))
    stranger.execute("CREATE TRIGGER no BEFORE INSERT ON reviewed_prs BEGIN SELECT RAISE(ABORT, 'no'); END").fetchall()
    with pytest.raises(HoldfastError):
        review(settings, ledger, "reviewer", wanted)
    stranger.execute("DROP TRIGGER no").fetchall()
    stranger.close()
    said = review(settings, ledger, "reviewer", wanted)
    assert said.posted is False and said.review_id == 80 and github.posts == 1


@pytest.mark.promise("A6")
@pytest.mark.parametrize("answered", [True, False])
def test_a_ledger_that_is_lost_does_not_let_a_review_be_posted_twice(settings, ledger, github, answered):
    github.plan = [] if answered else ["lost"]
    try:
        review(settings, ledger, "reviewer", PLAIN)
    except Unreached:
        assert not answered
    ledger.close()
    for name in ("ledger.db", "ledger.db-wal"):
        with open(os.path.join(settings.home, name), "wb") as file:
            file.write(b"x" * 8192)
    if answered:
        assert review(settings, ledger, "reviewer", PLAIN).posted is False
    else:
        with pytest.raises(Unreached):
            review(settings, ledger, "reviewer", PLAIN)
    assert github.posts == 1


def test_a_review_in_doubt_stays_so_whatever_else_is_found(settings, ledger, github):
    assert review(settings, ledger, "reviewer", KEYED).posted is True
    github.plan = ["lost"]
    with pytest.raises(Unreached):
        review(settings, ledger, "reviewer", AGAIN)
    assert review(settings, ledger, "reviewer", KEYED).posted is False
    with pytest.raises(Unreached):
        review(settings, ledger, "reviewer", AGAIN)
    assert github.posts == 2


def test_agents_whose_names_differ_by_case_have_reviews_of_their_own(settings, ledger, github):
    assert [review(settings, ledger, name, PLAIN).posted for name in ("A", "a")] == [True, True]


def test_the_secret_of_the_marks_is_the_owners_alone_and_a_spoiled_one_posts_nothing(settings, ledger, github):
    review(settings, ledger, "reviewer", PLAIN)
    path = os.path.join(settings.home, "review.key")
    assert os.stat(path).st_mode & 0o777 == 0o600
    os.chmod(path, 0o644)
    with pytest.raises(Damaged, match="read by other users"):
        review(settings, ledger, "other", PLAIN)
    os.chmod(path, 0o600)
    with open(path, "w") as file:
        file.write("nothing\n")
    with pytest.raises(Damaged, match="does not contain a secret"):
        review(settings, ledger, "other", PLAIN)
    assert github.posts == 1


@pytest.mark.promise("A6")
def test_of_ten_who_ask_again_with_one_key_one_posts(github, reviewer):
    said, again = [], {**REVIEW, "again": True}
    ask = lambda: said.append(reviewer.post("/github/review", again, Idempotency_Key="one"))  # noqa: E731
    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {one.status for one in said} <= {200, 409} and github.posts == 1


def test_nobody_can_make_the_mark_before_it_is_posted(github, reviewer):
    github.add_review(PATH, {"body": "<!-- holdfast:review 00000000000000000000000000000000 -->", "event": "COMMENT"})
    assert reviewer.post("/github/review", REVIEW).json["posted"] is True
    assert len(github.reviews[PATH]) == 2


def test_a_key_makes_a_review_that_is_asked_for_again_one_of_its_own(github, reviewer):
    reviewer.post("/github/review", REVIEW)
    again = {**REVIEW, "again": True}
    said = [reviewer.post("/github/review", again, Idempotency_Key="second") for _ in range(3)]
    assert [one.json["posted"] for one in said] == [True] * 3 and github.posts == 2


def test_nobody_there_and_nothing_set_are_said(gateway, home):
    reviewer = gateway.agent("reviewer")
    assert reviewer.post("/github/review", REVIEW).code == "usage"
    settings = config.load(home).replace(github_api="http://127.0.0.1:9", github_token=TOKEN)
    ledger = SqliteLedger(str(home))
    with pytest.raises(Unreached) as refused:
        review(settings, ledger, "a", Wanted("acme", "shop", 7, "x"))
    assert refused.value.sent is False and TOKEN not in str(refused.value)
    ledger.close()
    assert gateway.agent("typist", "secretary").post("/github/review", REVIEW).code == "denied"
    for wrong in ({"owner": "../x"}, {"repo": ".."}, {"repo": "a/b"}, {"pr_number": 0}, {"event": "MERGE"}, {"body": ""}):
        assert reviewer.post("/github/review", {**REVIEW, **wrong}).code == "invalid_request", wrong


@pytest.mark.promise("A5")
def test_a_dispatch_is_handed_to_the_webhook(gateway, github):
    gateway.add_role("runner", ["dispatch", "agent.memory.read", "agent.memory.write"])
    runner = gateway.agent("runner", "runner")
    runner.post("/gateway/memory", {"key": "k", "value": "Harbour words."})
    (gateway.home / "config.toml").write_text(f'[dispatch]\nwebhook = "{github.url}/hook"\nkey = "{TOKEN}"\n')
    said = runner.post("/dispatch", {"task": "Go", "to": "webhook"})
    assert said.json["delivered"] == "webhook"
    (told,) = github.reviews["/hook"]
    assert told["task"] == "Go" and "Harbour words." in told["role_context"]["memory"]
    github.plan = [500]
    assert runner.post("/dispatch", {"task": "Go", "to": "webhook"}).code == "unreached"
    assert github.posts == 2


@pytest.mark.promise("S2")
def test_a_secret_is_not_published(github, reviewer):
    secret = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    said = reviewer.post("/github/review", {**REVIEW, "body": f"The token is {secret}."})
    assert said.code == "secret" and secret not in said.data.decode()
    assert github.reviews == {} and github.posts == 0
