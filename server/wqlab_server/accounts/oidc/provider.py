"""The OpenID provider: its metadata and keys, redirects to it, and the identity in its answer.

Authlib makes and checks state, nonce, PKCE verifier and ID token. What it takes from the provider unchecked is checked
here: which URLs and algorithms the metadata name, and for whom an ID token is.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard
from urllib.parse import urlsplit

import httpx2
import structlog
from authlib.integrations.base_client import MismatchingStateError
from authlib.integrations.starlette_client import OAuthError, StarletteIntegration, StarletteOAuth2App
from joserfc.errors import BadSignatureError, JoseError
from starlette.requests import Request

from ...oidc_settings import is_protected, read_secret
from ...settings import Settings
from .client import BoundedClient, ProviderUnavailable

CLOCK_SKEW_S = 120
"""Most that the provider's clock may differ from this one when the times of an ID token are checked."""
METADATA_LIFE_S = 3600.0
"""Time for which metadata and keys are kept. A token with an unknown key id fetches the keys at once."""
CHECK_LIFE_S = 60.0
"""Time for which the sign-in page says that the provider answers, without asking it again."""
RETRY_AFTER_S = 15.0
"""Time after a failure for which the provider is not asked for its metadata again."""
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
"""Accepted signatures: only those with a public key. With `none` or HS256 others than the provider could sign."""
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_OPTIONAL = ("userinfo_endpoint", "authorization_response_iss_parameter_supported")
SUBJECT_LENGTH = 255
"""Longest `sub` that OpenID Connect Core 1.0, section 2, allows."""

log = structlog.get_logger(__name__)


class AnswerRefused(Exception):
    """The provider's answer is no proof of an identity; the text says why."""


class SignInDenied(Exception):
    """The provider or the person has ended the sign-in; `code` is the error code of RFC 6749, section 4.1.2.1."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Identity:
    """A person as the provider describes them."""

    issuer: str
    subject: str
    name: str
    """Name that the person would like, as the provider sends it; no identity."""
    groups: frozenset[str]


class _App(StarletteOAuth2App):  # type: ignore[misc]  # Authlib has no types
    """Authlib's application, with checked metadata and bounded requests."""

    client_cls = BoundedClient
    server_metadata: dict[str, Any]

    def __init__(self, issuer: str, **options: Any) -> None:
        super().__init__(StarletteIntegration("oidc"), name="oidc", **options)
        self._issuer = issuer
        self._loading = asyncio.Lock()
        self._loaded_at = float("-inf")
        self._failed: tuple[float, str] | None = None

    async def load_server_metadata(self, life_s: float | None = None) -> dict[str, Any]:
        """Return the checked metadata, from the provider if they are older than `life_s`, by default METADATA_LIFE_S.

        Raises ProviderUnavailable; it raises the same again for RETRY_AFTER_S without asking the provider.
        """
        async with self._loading:
            now = time.monotonic()
            if now - self._loaded_at < (METADATA_LIFE_S if life_s is None else life_s):
                return self.server_metadata
            if self._failed is not None and now - self._failed[0] < RETRY_AFTER_S:
                raise ProviderUnavailable(self._failed[1])
            try:
                document = await self._get_document(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
                # Replaced as a whole: without the keys, which are fetched again too.
                self.server_metadata = _checked(document, self._issuer)
            except ProviderUnavailable as error:
                self._failed = time.monotonic(), str(error)
                log.warning("oidc_provider_unavailable", issuer=self._issuer, error=str(error))
                raise
            self._loaded_at, self._failed = time.monotonic(), None
            return self.server_metadata

    async def fetch_jwk_set(self, force: bool = False) -> dict[str, Any]:
        """Return the provider's public keys for signatures, kept until `force`. Raises ProviderUnavailable."""
        metadata = await self.load_server_metadata()
        if "jwks" not in metadata or force:
            keys = (await self._get_document(metadata["jwks_uri"])).get("keys")
            if not isinstance(keys, list):
                raise ProviderUnavailable(f"{metadata['jwks_uri']} has no keys")
            metadata["jwks"] = {"keys": [key for key in keys if _signs(key)]}
        found: dict[str, Any] = metadata["jwks"]
        return found

    async def parse_id_token(self, token: dict[str, Any], nonce: str, *args: Any, **options: Any) -> Any:
        """Check an ID token and return its claims. If its signature is wrong, fetch new keys and retry once."""
        try:
            return await super().parse_id_token(token, nonce, *args, **options)
        except BadSignatureError:
            await self.fetch_jwk_set(force=True)
            return await super().parse_id_token(token, nonce, *args, **options)

    async def _get_document(self, url: str) -> dict[str, Any]:
        async with self._get_session() as client:
            answer = await client.request("GET", url, withhold_token=True)
        where = _without_query(url)
        if answer.status_code != 200:
            raise ProviderUnavailable(f"{where} answers {answer.status_code}")
        try:
            document = answer.json()
        except ValueError as error:
            raise ProviderUnavailable(f"{where} is not JSON") from error
        if not isinstance(document, dict):
            raise ProviderUnavailable(f"{where} is not a JSON object")
        return document


class Provider:
    """The lab's OpenID provider. Nothing is asked of it before the first sign-in."""

    def __init__(self, settings: Settings, client_secret: str) -> None:
        self.settings = settings
        self.client_secret = client_secret
        self.callback_url = f"{settings.public_url.rstrip('/')}/api/v1/session/oidc/callback"
        self._app = _App(
            settings.oidc_issuer,
            client_id=settings.oidc_client_id,
            client_secret=client_secret,
            client_kwargs={"scope": settings.oidc_scopes, "code_challenge_method": "S256", "timeout": None},
        )

    @classmethod
    def of(cls, settings: Settings) -> Provider | None:
        """Return the provider of the settings; None if they name none.

        Raises UnusableFile that names the setting and the fix if the file with the client secret is unusable.
        """
        file = settings.oidc_client_secret_file
        if not settings.oidc_issuer or file is None:
            return None
        return cls(settings, read_secret(file))

    async def problem(self) -> str | None:
        """Return why nobody can sign in now; None if the provider has answered within the last CHECK_LIFE_S."""
        try:
            await self._app.load_server_metadata(CHECK_LIFE_S)
        except ProviderUnavailable as error:
            return str(error)
        return None

    async def redirect(self, request: Request) -> str:
        """Return the URL of the provider's sign-in page; keep state, nonce and PKCE verifier in `request.session`.

        Raises ProviderUnavailable.
        """
        made = await self._app.authorize_redirect(request, self.callback_url)
        for kept in request.session.values():
            kept["data"].pop("url", None)  # the longest entry, and only returned here
        location: str = made.headers["location"]
        return location

    async def identity(self, request: Request) -> Identity:
        """Return the identity in the provider's answer, a request with the `session` that `redirect` has filled.

        Raises authlib's MismatchingStateError if the answer is to no request of this browser, SignInDenied if it is
        an error, AnswerRefused if it proves no identity, and ProviderUnavailable.
        """
        query = request.query_params
        # Before anything else is read: without a known state, anybody may have made up the rest.
        if not await self._app.framework.get_state_data(request.session, query.get("state", "")):
            raise MismatchingStateError
        metadata = await self._app.load_server_metadata()
        self._check_issuer(query.get("iss"), metadata)
        if "error" in query:
            raise SignInDenied(query["error"])
        if "code" not in query:
            raise AnswerRefused("it has no authorization code")
        try:
            token = await self._app.authorize_access_token(
                request,
                claims_options={
                    "iss": {"essential": True, "value": self.settings.oidc_issuer},
                    # Authlib's own options leave the audience to `azp`.
                    "aud": {"essential": True, "value": self.settings.oidc_client_id},
                },
                leeway=CLOCK_SKEW_S,
            )
        except OAuthError as error:
            raise AnswerRefused(_refusal(error.error)) from error
        except httpx2.HTTPError as error:
            raise ProviderUnavailable(f"its token endpoint fails: {error}") from error
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise AnswerRefused(f"its ID token is invalid ({error})") from error
        claims = token.get("userinfo")
        if claims is None:
            raise AnswerRefused("it has no ID token")
        return self._identity_of(await self._with_userinfo(token, claims))

    def _check_issuer(self, named: str | None, metadata: Mapping[str, Any]) -> None:
        """Check the issuer that an answer names (RFC 9207). Raises AnswerRefused."""
        required = metadata.get("authorization_response_iss_parameter_supported") is True
        if (required or named is not None) and named != self.settings.oidc_issuer:
            raise AnswerRefused("it comes from another issuer")

    async def _with_userinfo(self, token: dict[str, Any], claims: Mapping[str, Any]) -> dict[str, Any]:
        """Return the claims, with those of the userinfo endpoint if the ID token lacks groups or name."""
        complete = _claim(claims, self.settings.oidc_groups_claim) is not None and "preferred_username" in claims
        metadata = await self._app.load_server_metadata()
        if complete or "userinfo_endpoint" not in metadata or "access_token" not in token:
            return dict(claims)
        answer = await self._app.get(metadata["userinfo_endpoint"], token=token)
        try:
            more = answer.json() if answer.status_code == 200 else None
        except ValueError:
            more = None
        if not isinstance(more, dict):
            raise ProviderUnavailable(f"its userinfo endpoint answers {answer.status_code} without a JSON object")
        if more.get("sub") != claims["sub"]:
            raise AnswerRefused("ID token and userinfo are of different people")
        return {**more, **claims}

    def _identity_of(self, claims: Mapping[str, Any]) -> Identity:
        subject = claims["sub"]
        if not is_subject(subject):
            raise AnswerRefused("its identifier of the person (`sub`) is not a text of 1 to 255 characters")
        claim = self.settings.oidc_groups_claim
        groups = _claim(claims, claim)
        if groups is None and claim in (claims.get("_claim_names") or {}):
            raise AnswerRefused(f"the person is in too many groups for the claim {claim}; send fewer, or roles instead")
        if isinstance(groups, str):
            groups = [groups]
        if not isinstance(groups, list | None):
            raise AnswerRefused(f"its claim {claim} is not a list of names")
        named = (claims.get(key) for key in ("preferred_username", "email", "name"))
        name = next((each for each in named if isinstance(each, str) and each), "")
        known = frozenset(group for group in groups or () if isinstance(group, str))
        return Identity(self.settings.oidc_issuer, subject, name, known)


def is_subject(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= SUBJECT_LENGTH and value.isprintable()


def _checked(document: Mapping[str, Any], issuer: str) -> dict[str, Any]:
    """Return the metadata that are used, checked. Raises ProviderUnavailable.

    Others are left out because Authlib passes all of them to its HTTP client, as options of the same names: metadata
    with `verify` or `follow_redirects` would change how the client works.
    """
    if document.get("issuer") != issuer:
        raise ProviderUnavailable(
            f"the provider's issuer is {str(document.get('issuer'))[:200]!r}, not {issuer!r}: write it into "
            "WQLAB_OIDC_ISSUER exactly as the provider has it"
        )
    # Only a provider on this machine may name its endpoints here without encryption.
    loopback = not is_protected(issuer, loopback=False)
    kept: dict[str, Any] = {"issuer": issuer}
    for name in _ENDPOINTS:
        if not isinstance(document.get(name), str):
            raise ProviderUnavailable(f"the provider's metadata have no {name}")
    for name in (*_ENDPOINTS, *_OPTIONAL):
        value = document.get(name)
        if isinstance(value, str) and not is_protected(value, loopback=loopback):
            raise ProviderUnavailable(f"the provider's {name} is not encrypted: {_without_query(value)[:200]}")
        if value is not None:
            kept[name] = value
    offered = document.get("id_token_signing_alg_values_supported") or ["RS256"]
    kept["id_token_signing_alg_values_supported"] = [each for each in ALGORITHMS if each in offered]
    if not kept["id_token_signing_alg_values_supported"]:
        raise ProviderUnavailable(f"the provider signs ID tokens with none of {', '.join(ALGORITHMS)}")
    methods = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    if "client_secret_basic" not in methods and "client_secret_post" in methods:
        kept["token_endpoint_auth_method"] = "client_secret_post"  # noqa: S105
    return kept


def _signs(key: object) -> bool:
    """Return True for a public key that may sign: one of another kind would make the whole set unreadable."""
    return isinstance(key, dict) and key.get("kty") in {"RSA", "EC", "OKP"} and key.get("use", "sig") == "sig"


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """Return the claim of this name, or the one at this dotted path; None if there is none."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _refusal(code: str | None) -> str:
    """Return in words why the token endpoint has answered with an error code of RFC 6749, section 5.2."""
    if code in {"invalid_client", "unauthorized_client"}:
        return f"it does not know this lab ({code}): check WQLAB_OIDC_CLIENT_ID and WQLAB_OIDC_CLIENT_SECRET_FILE"
    return f"it refuses its own authorization code ({error_code(code)})"


def error_code(text: str | None) -> str:
    """Return an error code if the text looks like one, else a placeholder: it is shown to people."""
    return text if text and re.fullmatch(r"[a-z_]{1,40}", text) else "no known reason"


def _without_query(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"
