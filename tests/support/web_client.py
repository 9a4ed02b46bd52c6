"""A browser without a screen or scripts: it keeps the cookie, follows no redirect, and sends the forms of pages."""

from __future__ import annotations

import http.client
import re
from html import unescape
from urllib.parse import urlencode

from http_gateway import Response

FORM = "application/x-www-form-urlencoded"


class WebClient:
    """A person's browser at a gateway."""

    def __init__(self, port):
        self.port, self.cookie, self.set_cookie = port, "", ""

    def __call__(self, method, path, data=None, **headers):
        sent = {"Accept": "text/html", "Host": f"127.0.0.1:{self.port}"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie and "Cookie" not in sent:
            sent["Cookie"] = self.cookie
        if data is not None:
            sent.setdefault("Content-Type", FORM)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, urlencode(data) if data is not None else None, sent)
            response = connection.getresponse()
            answer = Response(response, response.read())
        finally:
            connection.close()
        self.set_cookie = answer.headers.get("set-cookie", "")
        if self.set_cookie:
            self.cookie = self.set_cookie.partition(";")[0]
        answer.text = answer.data.decode()
        return answer

    def get(self, path, **headers):
        return self("GET", path, **headers)

    def post(self, path, data, **headers):
        return self("POST", path, data, **headers)

    def sign_in(self, token):
        """Sign in with a token and return the answer."""
        return self.post("/sign-in", {"token": token})

    def send_form(self, page, action, **fields):
        """Send the form with this action from a page that was read, with its hidden fields."""
        return self.post(action, {**hidden_fields(page.text, action), **fields})


def hidden_fields(html, action):
    """Return the hidden fields of a form."""
    (form,) = [one for one in re.findall(r"<form\b.*?</form>", html, re.DOTALL) if f'action="{action}"' in one]
    return {unescape(name): unescape(value) for name, value in re.findall(r'type="hidden" name="(.*?)" value="(.*?)"', form)}
