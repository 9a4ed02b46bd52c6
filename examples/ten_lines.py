"""Store, update, search, undo: the shortest useful program.

Run:  python examples/ten_lines.py
"""

from holdfast import Memory

with Memory(project="demo") as memory:
    memory.store("We deploy on Fridays.", key="deploys", tags="ci-cd", valid_from="2026-01-05")
    memory.store("We deploy on Tuesdays, never on Fridays.", key="deploys", valid_from="2026-03-27")
    print("now:", memory.recall("when do we deploy")[0].text)
    print("in February:", memory.get("deploys", as_of="2026-02-01").text)
    memory.forget("deploys")
    print("after forget:", len(memory.recall("when do we deploy")), "hits")
    print("restored:", memory.restore("deploys").key)
