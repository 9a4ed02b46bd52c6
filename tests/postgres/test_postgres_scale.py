"""Check the statements of docs/scale.md about the schema and sizes on a real database."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from holdfast import Memory, config
from holdfast.postgres.pool import close_pools

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scale.md"
COUNT, CHARACTERS = 400, 400


def test_every_key_begins_with_the_tenant_so_that_a_tenant_can_live_on_one_node(postgres_databases, postgres_url):
    server, name = postgres_databases.server, postgres_url.rpartition("/")[2]
    keys = server.sql(
        """SELECT t.relname, i.relname, a.attname FROM pg_index x
        JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
        JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]
        WHERE x.indisunique AND t.relnamespace = 'holdfast'::regnamespace AND t.relname <> 'migration'""",
        name,
    )
    assert len(keys) > 20 and {first for _, _, first in keys} == {"tenant"}
    foreign = server.sql(
        """SELECT c.conname, c.conkey, c.confkey FROM pg_constraint c
        WHERE c.contype = 'f' AND c.connamespace = 'holdfast'::regnamespace""",
        name,
    )
    for constraint, ours, theirs in foreign:
        assert ours[0] == theirs[0] == 1, f"{constraint} leaves the tenant"
    assert server.sql("SELECT count(*) FROM pg_partitioned_table", name) == [(0,)]


def test_every_table_of_the_catalogue_and_of_the_truth_is_distributable_by_its_tenant(postgres_databases, postgres_url):
    server, name = postgres_databases.server, postgres_url.rpartition("/")[2]
    without = server.sql(
        """SELECT t.relname FROM pg_class t WHERE t.relkind = 'r' AND t.relnamespace = 'holdfast'::regnamespace
        AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attname = 'tenant' AND a.attnotnull)""",
        name,
    )
    assert without == [("migration",)]


def model(what):
    """Return the formula of a row of the page, as a function of characters and different words."""
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| {what}"))
    numbers = [float(one.replace(",", "")) for one in re.findall(r"[\d,.]*\d", row.split("|")[2])]
    each, by_character, by_word = (*numbers, 0.0)[:3]
    return lambda characters, words: each + by_character * characters + by_word * words


def said(random_, vocabulary):
    words = []
    while sum(map(len, words)) + len(words) < CHARACTERS:
        words.append(vocabulary[min(int(random_.expovariate(1 / 1500)), len(vocabulary) - 1)])
    return " ".join(words)[:CHARACTERS]


@pytest.mark.battery
@pytest.mark.parametrize("kind", ["note", "turn"])
def test_the_sizes_of_the_page_are_those_of_the_tables(postgres_databases, postgres_url, home, tmp_path, kind):
    server, name = postgres_databases.server, postgres_url.rpartition("/")[2]
    random_ = random.Random(7)
    letters = "etaoinshrdlucmfwypvbgk"
    vocabulary = ["".join(random_.choices(letters, k=random_.randint(4, 9))) for _ in range(8000)]
    texts = [said(random_, vocabulary) for _ in range(COUNT)]

    def sizes():
        server.sql("VACUUM", name)
        tables = "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace"
        return dict(server.sql(f"{tables} AND relkind = 'r'", name))

    before = sizes()
    with Memory(config=config.load(home).replace(store=postgres_url), project="demo", cwd=tmp_path) as memory:
        if kind == "note":
            memory.store_many([{"text": text, "key": f"n{number}"} for number, text in enumerate(texts)])
        else:
            memory.log([{"role": "user", "text": text} for text in texts], session="s", client="c")
        memory.recall("anything", mode="keyword")
    close_pools(postgres_url)
    grown = {table: (size - before[table]) / COUNT for table, size in sizes().items()}
    words = sum(len(set(text.split())) for text in texts) / COUNT
    truth = sum(grown[table] for table in ("document", "roll", "line"))
    catalogue = sum(grown[table] for table in ("doc", "passage", "mention"))
    told = "its document" if kind == "note" else "its line"
    for measured, formula in ((truth, model(f"{kind}, {told}")), (catalogue, model(f"{kind}, in the catalogue"))):
        assert 0.67 < formula(CHARACTERS, words) / measured < 1.5, (measured, formula(CHARACTERS, words), grown)
