"""Put the briefing into the system prompt, and what matches a question into the user message.

Run:  python examples/briefing_prompt.py
"""

from holdfast import Memory

QUESTION = "Which day do we deploy, and how do I run the tests?"

with Memory(project="demo", session="1", client="example") as memory:
    memory.store("Answer in English, in short sentences.", key="style", type="user", pinned=True)
    memory.store("We deploy on Tuesdays, never on Fridays.", key="deploys")
    start = memory.brief()  # once for each context: pinned notes, facts and the most useful notes

    memory.store("Run the tests with `make test`.", key="testing")  # another agent can store during the session
    prompt = memory.brief(prompt=QUESTION)  # for each prompt: notes that match and were not shown yet

    messages = [
        {"role": "system", "content": f"You are a coding agent.\n\n{start.text}"},
        {"role": "user", "content": f"{prompt.text}\n{QUESTION}".strip()},
    ]
    for message in messages:
        print(f"--- {message['role']}\n{message['content']}")
