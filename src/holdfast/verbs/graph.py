"""The graph of facts: `[[Name]]` in a fact links its subject to an entity, for as long as the fact holds. Pure.

A name is an entity's in any case and spacing. A fact labelled `alias` (or `aliases`, `aka`, `also known as`) gives its subject
further names for as long as it holds: those linked in it, else those with commas between. Which facts count is the caller's
choice: those as of a moment, or all there ever were.
"""

from __future__ import annotations

from collections import defaultdict

from holdfast.base.record import Record
from holdfast.errors import Template, UsageError, field
from holdfast.formats.facts import fold
from holdfast.safety.hidden_chars import make_name_visible, make_visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.models import Fact

ALIAS = frozenset(("alias", "aliases", "aka", "also known as"))
_DECLARES, _IS_SUBJECT, _IS_NAMED = 0, 1, 2  # whose spelling is shown: the lower, the rather


class Entity(Record):
    """Something that facts speak of: its name, its other names, and how many links away from the start it is."""

    name: str
    aliases: tuple[str, ...]
    distance: int


class Edge(Record):
    """A link from one entity to another, for as long as its fact holds."""

    source: str
    label: str
    target: str
    valid_from: str
    valid_to: str | None
    fact: Fact


class Graph(Record):
    """The entities around one, the nearest first, and the links that were followed. What no fact names has no entities."""

    start: str
    entities: tuple[Entity, ...]
    edges: tuple[Edge, ...]


def graph(facts: Iterable[Fact], entity: str, depth: int = 1) -> Graph:
    """What is linked with an entity, either way, in up to `depth` steps."""
    if depth < 0:
        fix = "Give 0 for the entity alone, 1 for its neighbours, and so on"
        raise UsageError(Template(field("depth"), f": {depth} is below 0"), fix)
    web = _Web(facts)
    start = web.find(entity)
    if start is None:
        return Graph(entity, (), ())
    distance, followed, ring = {start: 0}, dict[int, None](), [start]
    for step in range(1, depth + 1):
        nearest = []
        for place in ring:
            for other, edge in web.links(place):
                followed[edge] = None
                if other not in distance:
                    distance[other] = step
                    nearest.append(other)
        ring = nearest
        if not ring:
            break
    entities = [web.entity(place, steps) for place, steps in distance.items()]
    return Graph(web.name(start), tuple(entities), tuple([web.edge(one) for one in followed]))


def path(facts: Iterable[Fact], a: str, b: str) -> list[Edge]:
    """The fewest links from one entity to another, whichever way they point; of several such ways the first by name. Empty
    where there is none, and from an entity to itself."""
    web = _Web(facts)
    start, goal = web.find(a), web.find(b)
    if start is None or goal is None:
        return []
    came: dict[str, tuple[str, int]] = {start: (start, -1)}
    ring = [start]
    while ring and goal not in came:
        nearest = []
        for place in ring:
            for other, edge in web.links(place):
                if other not in came:
                    came[other] = (place, edge)
                    nearest.append(other)
        ring = nearest
    steps: list[Edge] = []
    while goal in came and goal != start:
        goal, edge = came[goal]
        steps.append(web.edge(edge))
    return steps[::-1]


def about(facts: Iterable[Fact], entity: str) -> list[Fact]:
    """The facts that an entity is the subject of or linked in, under whatever name, in the order given."""
    facts = list(facts)
    web = _Web(facts)
    wanted = web.find(entity)
    return [fact for fact in facts if wanted is not None and wanted in map(web.find, (fact.subject, *fact.links))]


def others_of(value: str, links: tuple[str, ...]) -> tuple[str, ...]:
    """The names that an alias declares: those linked in it, else those with commas between."""
    return links or tuple(value.split(","))


class _Web:
    """Names gathered into entities, and the links between them. An entity goes by the first of its folded names."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._folded: dict[str, str] = {}
        self._spelled: dict[str, tuple[int, str]] = {}
        self._shown: dict[str, str] = {}
        self._joined: dict[str, str] = {}
        self._groups: dict[str, list[str]] = {}
        self._sources: list[str] = []  # three plain lists for the edges: a tuple for each would keep the garbage collector busy
        self._targets: list[str] = []
        self._facts: list[Fact] = []
        self._links: dict[str, list[int]] = defaultdict(list)
        facts = list(facts)
        declaring = {label for label in {fact.label for fact in facts} if fold(label) in ALIAS}
        linking = [fact for fact in facts if fact.links and fact.label not in declaring]
        self._join([fact for fact in facts if fact.label in declaring] if declaring else [])
        self._gather({fact.subject for fact in facts if fact.label not in declaring}, _IS_SUBJECT)
        self._gather({name for fact in linking for name in fact.links}, _IS_NAMED)
        for name in self._joined:
            self._groups.setdefault(self._root(name), []).append(name)
        self._link(linking)

    def find(self, name: str) -> str | None:
        """The entity of a name, if any fact speaks of it."""
        folded = fold(name)
        return self._root(folded) if folded in self._spelled else None

    def name(self, place: str) -> str:
        """The spelling of the subject that declares an alias, else of one that facts are about, else of a link."""
        name = self._shown.get(place)
        if name is None:
            name = self._shown[place] = min([self._spelled[one] for one in self._names(place)])[1]
        return name

    def _names(self, place: str) -> list[str]:
        return [place, *self._groups.get(place, ())]

    def entity(self, place: str, distance: int) -> Entity:
        name = self.name(place)
        spellings = [self._spelled[one][1] for one in self._names(place)]
        return Entity(name, tuple(sorted([other for other in spellings if other != name])), distance)

    def links(self, place: str) -> list[tuple[str, int]]:
        """The neighbours and the links to them, by name; what still holds comes first, then by label and date."""
        sources, targets = self._sources, self._targets
        found = [(sources[edge] if targets[edge] == place else targets[edge], edge) for edge in self._links.get(place, ())]
        return sorted(found, key=self._order) if len(found) > 1 else found

    def edge(self, number: int) -> Edge:
        source, target, fact = self._sources[number], self._targets[number], self._facts[number]
        return Edge(self.name(source), fact.label, self.name(target), fact.valid_from, fact.valid_to, fact)

    def _order(self, link: tuple[str, int]) -> tuple[object, ...]:
        other, number = link
        fact = self._facts[number]
        return other, fact.valid_to is not None, fold(fact.label), fact.valid_from, fact.value, fact.path, fact.line

    def _join(self, facts: list[Fact]) -> None:
        """Makes one of the names that these facts declare to be one."""
        for fact in facts:
            self._gather({fact.subject}, _DECLARES)
            others = others_of(fact.value, fact.links)
            self._gather(set(others), _IS_NAMED)
            for one, other in [(fold(fact.subject), fold(other)) for other in others]:
                first, second = sorted((self._root(one), self._root(other)))
                if first and first != second:
                    self._joined[second] = first

    def _gather(self, names: set[str], rank: int) -> None:
        """Takes names in, and keeps the best spelling of each."""
        spelled = self._spelled
        for name in names:
            folded = self._folded[name] = fold(name)
            mine = (rank, " ".join(name.split()))
            best = spelled.get(folded)
            if folded and (best is None or mine < best):
                spelled[folded] = mine

    def _link(self, facts: list[Fact]) -> None:
        places = {name: self._root(folded) for name, folded in self._folded.items()}
        sources, targets, kept, links = self._sources, self._targets, self._facts, self._links
        for fact in facts:
            source = places[fact.subject]
            for target in {places[name] for name in fact.links}:
                if source and target and target != source:
                    links[source].append(len(kept))
                    links[target].append(len(kept))
                    sources.append(source)
                    targets.append(target)
                    kept.append(fact)

    def _root(self, folded: str) -> str:
        root = folded
        while root in self._joined:
            root = self._joined[root]
        while folded != root:  # so that long chains of aliases are walked once
            self._joined[folded], folded = root, self._joined[folded]
        return root


# --- drawings


def as_text(graph: Graph) -> str:
    """A tree for a terminal: each link once, each entity's own links where it first appears."""
    if not graph.entities:
        return f"{graph.start}: nothing is known"
    order = {entity.name: place for place, entity in enumerate(graph.entities)}
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
    """A flowchart for Markdown; links that are over are dotted."""
    ids = {entity.name: f"n{place}" for place, entity in enumerate(graph.entities)}
    rows = ["graph LR"]
    rows += [f'    {ids[entity.name]}["{_mermaid(entity.name)}"]' for entity in graph.entities]
    for edge in graph.edges:
        arrow = "-.->" if edge.valid_to else "-->"
        rows.append(f'    {ids[edge.source]} {arrow}|"{_mermaid(f"{edge.label}, {_during(edge)}")}"| {ids[edge.target]}')
    return "\n".join(rows)


def as_dot(graph: Graph) -> str:
    """For Graphviz; links that are over are dashed."""
    ids = {entity.name: f"n{place}" for place, entity in enumerate(graph.entities)}
    rows = ["digraph facts {"]
    rows += [f'    {ids[entity.name]} [label="{_dot(entity.name)}"];' for entity in graph.entities]
    for edge in graph.edges:
        style = ", style=dashed" if edge.valid_to else ""
        label = _dot(f"{edge.label}, {_during(edge)}")
        rows.append(f'    {ids[edge.source]} -> {ids[edge.target]} [label="{label}"{style}];')
    return "\n".join([*rows, "}"])


def _branches(name: str, below: dict[str, list[Edge]], prefix: str) -> list[tuple[str, bool, str, Edge]]:
    """The links to draw under an entity, the last first, as a stack wants them; none where it was drawn before."""
    edges = below.pop(name, [])[::-1]
    return [(prefix, place == 0, name, edge) for place, edge in enumerate(edges)]


def _titled(entity: Entity) -> str:
    name = make_name_visible(entity.name)
    return f"{name} (also {', '.join([make_name_visible(alias) for alias in entity.aliases])})" if entity.aliases else name


def _during(edge: Edge) -> str:
    return f"{edge.valid_from} to {edge.valid_to}" if edge.valid_to else f"since {edge.valid_from}"


def _mermaid(text: str) -> str:
    """Every sign that Mermaid or HTML could read as more than itself, by its number."""
    return "".join([sign if sign.isalnum() or sign in " -_.,:/" else f"#{ord(sign)};" for sign in make_visible(text)])


def _dot(text: str) -> str:
    return make_visible(text).replace("\\", "\\\\").replace('"', '\\"')
