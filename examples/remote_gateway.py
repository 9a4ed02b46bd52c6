"""Use a Holdfast server: the address and a token take the place of the home folder.

Start a server and add an agent:
    holdfast serve
    holdfast agent add writer --role code-review-engineer
Run:
    HOLDFAST_URL=http://127.0.0.1:8710 HOLDFAST_TOKEN=hf_... python examples/remote_gateway.py
"""

import os
import sys

from holdfast import Denied, Memory, TooMany, Unauthenticated, Unreached

try:
    with Memory(os.environ["HOLDFAST_URL"], token=os.environ["HOLDFAST_TOKEN"]) as memory:
        memory.store("Use pytest, never unittest.", key="testing", scope="agent")  # this agent's own memory
        for hit in memory.recall("which test runner", scope="agent"):
            print(f"{hit.key}: {hit.text}")
except KeyError as error:
    sys.exit(f"Set {error.args[0]}; see the comment at the top of this file.")
except Unauthenticated as error:
    sys.exit(f"The token is not valid: {error}")
except Denied as error:
    sys.exit(f"The role of this agent does not allow that: {error}")
except Unreached as error:
    sys.exit(f"The server does not answer: {error}")
except TooMany as error:
    sys.exit(f"Too many requests. Try again in {error.retry_after} seconds.")
