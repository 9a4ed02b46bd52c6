"""A program for mem0's open-source package, on Holdfast: only the import has changed.

Run:  python examples/mem0_quickstart.py
"""

from holdfast.adapters.mem0 import Memory  # was: from mem0 import Memory

m = Memory()
messages = [
    {"role": "user", "content": "I'm planning to watch a movie tonight. Any recommendations?"},
    {"role": "assistant", "content": "How about a thriller?"},
    {"role": "user", "content": "I don't like thrillers, but I love sci-fi movies."},
]
added = m.add(messages, user_id="alice", metadata={"category": "movies"})
print("added:", len(added["results"]))
print("added again:", len(m.add(messages, user_id="alice")["results"]))

found = m.search("Which sci-fi movies?", filters={"user_id": "alice", "category": "movies"})
print("found:", found["results"][0]["memory"])
print("found for bob:", len(m.search("sci-fi movies", filters={"user_id": "bob"})["results"]))

memory_id = found["results"][0]["id"]
m.update(memory_id, "Alice loves sci-fi movies.")
print("history:", [event["event"] for event in m.history(memory_id)])
m.delete_all(user_id="alice")
print("left:", len(m.get_all(filters={"user_id": "alice"})["results"]))
m.close()
