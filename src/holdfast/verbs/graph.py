"""The graph of facts: `[[Name]]` in a fact links its subject to an entity, for as long as the fact holds.
A `[[Name]]` in other text links the title of its note or file to that name: a plain link, labelled `mentions`, without dates.

Names are compared without case and spacing. A fact labelled `alias` (or `aliases`, `aka`, `also known as`) gives its subject
further names: those linked in it, else those separated by commas. The caller chooses the facts: those that held at a moment,
or all of them.
"""

from __future__ import annotations

from collections import defaultdict

from holdfast.base.record import Record
from holdfast.errors import Template, UsageError, field
from holdfast.formats.facts import ALIAS_LABELS, alias_names, normalize_name
from holdfast.safety.hidden_chars import make_name_visible, make_visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.context.caller import Context, When
    from holdfast.models import Fact

_DECLARES, _IS_SUBJECT, _IS_LINKED = 0, 1, 2  # how a name occurs: the spelling with the lowest rank is shown


class Entity(Record):
    """An entity of facts: its name, its other names, and its distance from the start in links."""

    name: str
    aliases: tuple[str, ...]
    distance: int


class Edge(Record):
    """A link from one entity to another, for as long as its fact holds. A plain link has the label `mentions` and no dates: its
    `valid_from` is ""."""

    source: str
    label: str
    target: str
    valid_from: str
    valid_to: str | None
    fact: Fact


class Graph(Record):
    """The entities around one, the nearest first, and the links that were followed. Empty if no fact names the entity."""

    start: str
    entities: tuple[Entity, ...]
    edges: tuple[Edge, ...]


def list_links(context: Context, as_of: When, scope: str | None) -> list[Fact]:
    """Return the facts that hold at a moment, and without one also the plain links, which have no dates."""
    from holdfast.verbs import facts

    found = facts.list_facts(context, subject=None, label=None, as_of=as_of, scope=scope, history=False)
    if as_of is not None or not context.config.enabled:
        return found
    folders = facts.find_folders(context, scope)  # `list_facts` has refreshed them
    return found + context.query(lambda: context.index.list_mentions(folders))


def build_graph(facts: Iterable[Fact], entity: str, depth: int = 1) -> Graph:
    """Return what is linked with an entity, in either direction, in up to `depth` steps."""
    if depth < 0:
        fix = "Use 0 for the entity alone, 1 for its neighbours, and so on"
        raise UsageError(Template(field("depth"), f" must be 0 or more, not {depth}"), fix)
    links = _Links(facts)
    start = links.find(entity)
    if start is None:
        return Graph(entity, (), ())
    distance, followed, ring = {start: 0}, dict[int, None](), [start]
    for step in range(1, depth + 1):
        neighbours = []
        for node in ring:
            for other, link in links.neighbours(node):
                followed[link] = None
                if other not in distance:
                    distance[other] = step
                    neighbours.append(other)
        ring = neighbours
        if not ring:
            break
    entities = [links.entity(node, steps) for node, steps in distance.items()]
    return Graph(links.name(start), tuple(entities), tuple([links.edge(link) for link in followed]))


def find_path(facts: Iterable[Fact], start: str, end: str) -> list[Edge]:
    """Return the shortest path between two entities, in either direction; of several the first by name.

    It is empty if there is none, and from an entity to itself.
    """
    links = _Links(facts)
    first, goal = links.find(start), links.find(end)
    if first is None or goal is None:
        return []
    reached_from: dict[str, tuple[str, int]] = {first: (first, -1)}
    ring = [first]
    while ring and goal not in reached_from:
        neighbours = []
        for node in ring:
            for other, link in links.neighbours(node):
                if other not in reached_from:
                    reached_from[other] = (node, link)
                    neighbours.append(other)
        ring = neighbours
    steps: list[Edge] = []
    while goal in reached_from and goal != first:
        goal, link = reached_from[goal]
        steps.append(links.edge(link))
    return steps[::-1]


class _Link(Record):
    """A fact that links two entities."""

    source: str
    target: str
    fact: Fact


class _Links:
    """Names grouped into entities, and the links between them. An entity (a node) is named by the first of its folded names."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._folded: dict[str, str] = {}  # by name
        self._spellings: dict[str, tuple[int, str]] = {}  # by folded name: the best rank and spelling
        self._shown: dict[str, str] = {}  # by node
        self._parents: dict[str, str] = {}  # of folded names that are aliases: a union-find forest
        self._aliases: dict[str, list[str]] = {}  # by node
        self._links: list[_Link] = []
        self._links_of: dict[str, list[int]] = defaultdict(list)  # by node: positions in `_links`
        facts = list(facts)
        declaring = {label for label in {fact.label for fact in facts} if normalize_name(label) in ALIAS_LABELS}
        linking = [fact for fact in facts if fact.links and fact.label not in declaring]
        self._join_aliases([fact for fact in facts if fact.label in declaring] if declaring else [])
        self._add_names({fact.subject for fact in facts if fact.label not in declaring}, _IS_SUBJECT)
        self._add_names({name for fact in linking for name in fact.links}, _IS_LINKED)
        for name in self._parents:
            self._aliases.setdefault(self._root(name), []).append(name)
        self._add_links(linking)

    def find(self, name: str) -> str | None:
        """Return the node of a name, if a fact names it."""
        folded = normalize_name(name)
        return self._root(folded) if folded in self._spellings else None

    def name(self, node: str) -> str:
        """Return the spelling of the subject that declares an alias, else of a fact's subject, else of a link."""
        name = self._shown.get(node)
        if name is None:
            name = self._shown[node] = min([self._spellings[folded] for folded in self._names(node)])[1]
        return name

    def _names(self, node: str) -> list[str]:
        return [node, *self._aliases.get(node, ())]

    def entity(self, node: str, distance: int) -> Entity:
        name = self.name(node)
        spellings = [self._spellings[folded][1] for folded in self._names(node)]
        return Entity(name, tuple(sorted([other for other in spellings if other != name])), distance)

    def neighbours(self, node: str) -> list[tuple[str, int]]:
        """Return the neighbours and the links to them, by name; links that still hold first, then by label and date."""
        found = []
        for number in self._links_of.get(node, ()):
            link = self._links[number]
            found.append((link.source if link.target == node else link.target, number))
        return sorted(found, key=self._order)

    def edge(self, number: int) -> Edge:
        link = self._links[number]
        fact = link.fact
        return Edge(
            source=self.name(link.source),
            label=fact.label,
            target=self.name(link.target),
            valid_from=fact.valid_from,
            valid_to=fact.valid_to,
            fact=fact,
        )

    def _order(self, neighbour: tuple[str, int]) -> tuple[object, ...]:
        other, number = neighbour
        fact = self._links[number].fact
        return other, fact.valid_to is not None, normalize_name(fact.label), fact.valid_from, fact.value, fact.path, fact.line

    def _join_aliases(self, facts: list[Fact]) -> None:
        """Make one entity of the names that these facts declare to be the same."""
        for fact in facts:
            self._add_names({fact.subject}, _DECLARES)
            others = alias_names(fact.value, fact.links)
            self._add_names(set(others), _IS_LINKED)
            for name, other in [(normalize_name(fact.subject), normalize_name(other)) for other in others]:
                first, second = sorted((self._root(name), self._root(other)))
                if first and first != second:
                    self._parents[second] = first

    def _add_names(self, names: set[str], rank: int) -> None:
        """Add names, and keep the best spelling of each."""
        for name in names:
            folded = self._folded[name] = normalize_name(name)
            spelling = (rank, " ".join(name.split()))
            best = self._spellings.get(folded)
            if folded and (best is None or spelling < best):
                self._spellings[folded] = spelling

    def _add_links(self, facts: list[Fact]) -> None:
        nodes = {name: self._root(folded) for name, folded in self._folded.items()}
        for fact in facts:
            source = nodes[fact.subject]
            for target in {nodes[name] for name in fact.links}:
                if source and target and target != source:
                    self._links_of[source].append(len(self._links))
                    self._links_of[target].append(len(self._links))
                    self._links.append(_Link(source, target, fact))

    def _root(self, folded: str) -> str:
        root = folded
        while root in self._parents:
            root = self._parents[root]
        while folded != root:  # shorten the chain for the next call
            self._parents[folded], folded = root, self._parents[folded]
        return root


# --- drawings ---------------------------------------------------------------------------------------------------------


def as_text(graph: Graph) -> str:
    """Return a tree for a terminal: each link once, each entity's own links where it first appears."""
    if not graph.entities:
        return f"{graph.start}: no facts"
    order = {entity.name: number for number, entity in enumerate(graph.entities)}
    below: dict[str, list[Edge]] = {}
    for edge in graph.edges:
        below.setdefault(min(edge.source, edge.target, key=order.__getitem__), []).append(edge)
    known = {entity.name: _titled(entity) for entity in graph.entities}
    rows = [known[graph.start]]
    waiting = _branches(graph.start, below, "")
    while waiting:
        prefix, last, name, edge = waiting.pop()
        far = edge.target if edge.source == name else edge.source
        arrow = "→" if edge.source == name else "←"
        rows.append(f"{prefix}{'└' if last else '├'}── {edge.label} {arrow} {known[far]} ({_during(edge)})")
        waiting += _branches(far, below, prefix + ("    " if last else "│   "))
    return "\n".join(rows)


def as_mermaid(graph: Graph) -> str:
    """Return a Mermaid flowchart for Markdown; links that no longer hold are dotted."""
    ids = {entity.name: f"n{number}" for number, entity in enumerate(graph.entities)}
    rows = ["graph LR"]
    rows += [f'    {ids[entity.name]}["{_mermaid(entity.name)}"]' for entity in graph.entities]
    for edge in graph.edges:
        arrow = "-.->" if edge.valid_to else "-->"
        rows.append(f'    {ids[edge.source]} {arrow}|"{_mermaid(f"{edge.label}, {_during(edge)}")}"| {ids[edge.target]}')
    return "\n".join(rows)


def as_dot(graph: Graph) -> str:
    """Return a graph for Graphviz; links that no longer hold are dashed."""
    ids = {entity.name: f"n{number}" for number, entity in enumerate(graph.entities)}
    rows = ["digraph facts {"]
    rows += [f'    {ids[entity.name]} [label="{_dot(entity.name)}"];' for entity in graph.entities]
    for edge in graph.edges:
        style = ", style=dashed" if edge.valid_to else ""
        label = _dot(f"{edge.label}, {_during(edge)}")
        rows.append(f'    {ids[edge.source]} -> {ids[edge.target]} [label="{label}"{style}];')
    return "\n".join([*rows, "}"])


def _branches(name: str, below: dict[str, list[Edge]], prefix: str) -> list[tuple[str, bool, str, Edge]]:
    """Return the links to draw under an entity, last first for the stack; empty if it was drawn before."""
    edges = below.pop(name, [])[::-1]
    return [(prefix, number == 0, name, edge) for number, edge in enumerate(edges)]


def _titled(entity: Entity) -> str:
    name = make_name_visible(entity.name)
    return f"{name} (also {', '.join([make_name_visible(alias) for alias in entity.aliases])})" if entity.aliases else name


def _during(edge: Edge) -> str:
    if not edge.valid_from:
        return "undated"
    return f"{edge.valid_from} to {edge.valid_to}" if edge.valid_to else f"since {edge.valid_from}"


def _mermaid(text: str) -> str:
    """Escape every character that Mermaid or HTML could interpret, by its code point."""
    return "".join([char if char.isalnum() or char in " -_.,:/" else f"#{ord(char)};" for char in make_visible(text)])


def _dot(text: str) -> str:
    return make_visible(text).replace("\\", "\\\\").replace('"', '\\"')
