"""Generate notes without secrets: prose in several languages, code, hashes, lock files, logs, and text about passwords."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable

_HEX = "0123456789abcdef"
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PEOPLE = ("Ada", "Grace", "Linus", "Barbara", "Edsger", "Radia", "Ken", "Margaret")
_THINGS = ("deploys", "the build", "the importer", "billing", "the parser", "search", "the gateway", "login", "the cache", "CI")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_PACKAGES = ("lodash", "react-dom", "pydantic", "numpy", "left-pad", "@types/node", "typescript", "serde", "tokio", "eslint")
_PROSE = (
    "{who} decided that {thing} happens on {day}s, because nobody wants to repair {thing} over a weekend.",
    "Always run the tests of {thing} before a release; {who} was bitten by that in {year}.",
    "Wir veröffentlichen {thing} immer am Vormittag. {who} prüft vorher die Schlüsselwörter und die Länge der Passwörter.",
    "Le mot de passe est demandé à {who} avant chaque livraison ; le jeton expire au bout de {n} minutes.",
    "La contraseña debe tener al menos {n} caracteres; {who} lo comprobó el {year}-03-{d:02d}.",
    "{who} さんは毎週{n}回テストを実行します。パスワードは金庫にあります。",
    "部署在星期二进行，密码由 {who} 保管，不要写进笔记。",
    "Пароль меняет {who} раз в {n} дней; в заметках его нет.",
    "The API key lives in the vault under team/{low}; ask {who}. Never paste it into a note.",
    "Token limits: the model takes {big} tokens, and {thing} uses about {n}% of them.",
    "The secret of {thing} is that {who} wrote the tests first. The key insight came on {day}.",
    "Passwords: {n}-character minimum, hashed with argon2id, rotated every {n} days; see docs/auth.md.",
    "password: required, at least {n} characters, checked by validate_password() in accounts/forms.py",
    "The access token is refreshed by refresh_token() every {n} minutes; the client secret is read from the environment.",
    "Authentication: use `Authorization: Bearer <token>`; the basic scheme is switched off since {year}.",
    "key: {low}-{n}, value: see the table; primary_key = {low}_id, foreign_key = {low}_ref_{n}",
)
_ABOUT_PASSWORDS = (  # in forms that contain a password in other notes
    "password must have {n} characters; the password for {low} is in 1Password, ask {who}.",
    "pass: {n} tests, fail: 0, {n}% of them in {d}.{n}s\n--- PASS: TestOAuth2Login (0.{n:02d}s)",
    "pw: see vault\npass: tests/test_{low}{d}.py::test_login_{n}\nsecond pass: {n}x faster than the first",
    "| field | type | note |\n|---|---|---|\n| password | varchar({n}) | argon2id |\n| pass | bool{n} | since v{d}.{n}.0 |",
    "| password | at least {n} characters |\n| pass | see `docs/auth{d}.md` |\n| password | sha256 |",
    "**Password:** required, {n}+ characters\n**Password policy**: NIST-800-63B\n- **password**: `get_password()`",
    "The admin password expires in {n}d; password is now optional; the password for prod is rotated every {n} days.",
    "The admin password was changed on {year}-03-{d:02d}. Password for the {low} DB is: see vault/{low}{d}.",
    "password reset page: /accounts/reset{d}, password field id=pw{d}, password hashing: pbkdf2_sha256",
    "{low} login --password $PASSWORD --user {who}; {low} login --password <password>; --password-file /run/{low}{d}",
    "mysql -uroot -p {low}_v{d}; mysql -u root -p$MYSQL_PWD -P{big}; mkdir -p/srv/{low}{d}",
    "docker run --name mysql -p{n}06:3306; ssh -p{big} host{d}; tar -xpf {low}{d}.tar",
    "sshpass -p \"$PASS\" ssh {low}@host{d}; CREATE ROLE {low} IDENTIFIED BY 'password'",
    "ALTER ROLE {low} WITH PASSWORD '${{PW}}';",
    "credentials: see 1Password; credentials: {low}:{low}; credentials: arn:aws:iam::{big}{big}:role/Deploy{d}",
    "Each row is identified by its ULID {ulid}; bypass: CVE-{year}-{big}; compass=N{n}E{d}; the sig= of the link is cut",
    "Hashes that start with $6$ are sha512crypt, with $2b$12$ bcrypt; otpauth://totp/{low}?secret=SECRET is the form.",
    "The ssh key fingerprint is SHA256:{b64_32}; api_key_header = X-Internal-Api-Key-V{d}",
    "DATABASE_URL=postgres://postgres:postgres@localhost/test{d} and redis://{low}@127.0.0.1:{big}/0",
)
_CODE = (
    "def get_token(self) -> str:\n    return self._tokens[self.key_id].value  # {who}",
    "password = getpass.getpass('Password: ')\nconn = connect(host='{low}.internal', password=password)",
    "const apiKey = process.env.API_KEY ?? config.get('apiKey');\nconst token = await auth.getToken(apiKey, {{ttl: {n}}});",
    "PASSWORD = os.environ['{up}_PASSWORD']\nSECRET_KEY = env('SECRET_KEY')",
    "secret_key: ${{{{ secrets.{up}_TOKEN }}}}\napi_key: ${{{up}_API_KEY}}",
    "if token.kind == TokenKind.KEYWORD and token.value == 'import':\n    self.advance({n})",
    "CREATE TABLE users (id bigint PRIMARY KEY, password_hash text NOT NULL, api_token_id uuid REFERENCES tokens (id));",
    "DATABASE_URL=postgres://user:password@localhost:5432/{low}  # the example of the docs",
    "psql postgres://{low}@db.internal:5432/{low}_test -c 'select {n}'",
    "for key, value in sorted(items.items()):\n    print(f'{{key}}: {{value:>{n}}}')",
    "curl -s https://api.{low}.org/v{n}/items?page={n} | jq '.items[].key'",
    "git clone git@github.com:{low}/{low}.git && cd {low} && make test",
    "export TOKEN=$(vault read -field=token secret/{low})\nexport API_KEY=\"$TOKEN\"",
    "auth: {{type: oauth2, flow: client_credentials, tokenUrl: https://id.{low}.org/oauth/token}}",
    "access_log /var/log/nginx/{low}.access.log combined; auth_basic \"{low}\"; auth_basic_user_file /etc/nginx/.htpasswd;",
)
_LOGS = (
    "{year}-03-{d:02d}T10:{d:02d}:07Z INFO {low} request_id={uuid} status=200 duration={n}ms",
    "[{year}-03-{d:02d} 10:{d:02d}:07,{n:03d}] ERROR auth: token expired for session {ulid} (kid={n})",
    "commit {sha1}\nAuthor: {who} <{low}@example.org>\n\n    Fix {thing}",
    "Fixed in {sha7}; bisected between {sha1} and {sha1}. The cache key is {sha256}.",
    "index {sha7}..{sha7} 100644\n--- a/src/{low}.py\n+++ b/src/{low}.py\n@@ -{n},7 +{n},9 @@ def token(self):",
    "sha256:{sha256}  {low}-{n}.{d}.0.tar.gz",
    "note {ulid} was superseded by {ulid}; session {uuid}; trace id {hex32}",
    "key = {uuid}\nid = {ulid}\netag = \"{hex32}\"",
    "docker pull registry.{low}.org/{low}@sha256:{sha256}",
)
_LOCKS = (
    '"{package}": {{"version": "{n}.{d}.1", "resolved": "https://registry.npmjs.org/{package}/-/x-{n}.{d}.1.tgz", '
    '"integrity": "sha512-{b64_64}=="}}',
    '{package}@^{n}.{d}.0:\n  version "{n}.{d}.2"\n  resolved "https://registry.yarnpkg.com/{package}/-/x-{n}.tgz#{sha1}"\n'
    "  integrity sha512-{b64_64}==",
    '[[package]]\nname = "{package}"\nversion = "{n}.{d}.0"\nchecksum = "{sha256}"',
    "{package}=={n}.{d}.0 --hash=sha256:{sha256}",
    "github.com/{low}/{low} v{n}.{d}.0 h1:{b64_32}=",
    '{{file = "{low}-{n}.{d}.0-py3-none-any.whl", hash = "sha256:{sha256}"}}',
)
_LINKS = (
    "![a diagram](data:image/png;base64,{b64_long})",
    "See https://{low}.org/docs/{low}/auth?tab=tokens&page={n}#api-keys and /usr/share/doc/{low}/README.gz",
    "/home/{low}/projects/{low}/src/auth/token_store_v{n}.py:{n}: the key is looked up twice",
    "https://example.org/a/{uuid}/b?sig_version={n}&token_type=bearer",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b64_32} {low}@laptop",
    "-----BEGIN PUBLIC KEY-----\n{b64_64}\n-----END PUBLIC KEY-----",
    "Python 3.{d}.{n}, SQLite 3.{n}.{d}, Node v{n}.{d}.0, kernel 6.{d}.0-{n}-generic, build {sha7}",
    "ISBN 978-0-{n:03d}-{big}-{d}, phone +49 30 {big}{n}, card ends in {n:04d}, IBAN DE{n:02d}{big}{big}",
    "The certificate's fingerprint is SHA256:{b64_32}, valid until {year}-12-31.",
)
KINDS: dict[str, tuple[str, ...]] = {
    "prose": _PROSE, "about passwords": _ABOUT_PASSWORDS, "code": _CODE, "logs": _LOGS, "lock files": _LOCKS, "links": _LINKS,
}  # fmt: skip


def make_notes(rng: random.Random, count: int) -> list[tuple[str, str]]:
    """Return `count` notes of two to four pieces, each with its kind."""
    notes = []
    for _ in range(count):
        kind = rng.choice(list(KINDS))
        pieces = [rng.choice(KINDS[kind]) for _ in range(rng.randint(1, 3))] + [rng.choice(_PROSE)]
        notes.append((kind, "\n".join([_fill(piece, rng) for piece in pieces])))
    return notes


def _fill(piece: str, rng: random.Random) -> str:
    """Replace each field by a random value, also fields of the same name by different ones."""
    return string.Formatter().vformat(piece, (), _RandomValues(rng))


class _RandomValues(dict[str, object]):
    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng

    def __getitem__(self, name: str) -> object:
        return _MAKERS[name](self._rng)


def _random_string(alphabet: str, count: int) -> Callable[[random.Random], str]:
    return lambda rng: "".join(rng.choices(alphabet, k=count))


def _random_base64(count: int) -> Callable[[random.Random], str]:
    return lambda rng: base64.b64encode(rng.randbytes(count)).decode().rstrip("=")


def _random_uuid(rng: random.Random) -> str:
    digits = "".join(rng.choices(_HEX, k=32))
    return "-".join((digits[:8], digits[8:12], "4" + digits[13:16], "a" + digits[17:20], digits[20:]))


_MAKERS: dict[str, Callable[[random.Random], object]] = {
    "who": lambda rng: rng.choice(_PEOPLE), "thing": lambda rng: rng.choice(_THINGS),
    "day": lambda rng: rng.choice(_DAYS), "package": lambda rng: rng.choice(_PACKAGES),
    "year": lambda rng: rng.randint(2019, 2027), "n": lambda rng: rng.randint(2, 99),
    "d": lambda rng: rng.randint(1, 28), "big": lambda rng: rng.randint(10000, 99999),
    "low": lambda rng: "".join(rng.choices(string.ascii_lowercase, k=rng.randint(4, 9))),
    "up": lambda rng: "".join(rng.choices(string.ascii_uppercase, k=rng.randint(3, 7))),
    "sha1": _random_string(_HEX, 40), "sha7": _random_string(_HEX, 7), "sha256": _random_string(_HEX, 64),
    "hex32": _random_string(_HEX, 32),
    "ulid": _random_string(_CROCKFORD, 16),
    "uuid": _random_uuid, "b64_32": _random_base64(32), "b64_64": _random_base64(64), "b64_long": _random_base64(900),
}  # fmt: skip
