"""TLS contexts are shared, and follow their CA file."""

import os
import resource
import ssl
from pathlib import Path

import pytest
from support.values import certificates

from appliance.net.probing.tls_contexts import AuthorityError, TlsContexts

pytestmark = pytest.mark.sockets


def test_contexts_are_shared(tmp_path: Path):
    """Every server of a CA file has the same context, one with and one without names to verify."""
    authority = str(certificates.issue(tmp_path, "localhost").authority)
    contexts = TlsContexts()
    unnamed = contexts.context(verify=authority, named=False)
    assert contexts.context(verify=authority, named=False) is unnamed
    named = contexts.context(verify=authority, named=True)
    assert (unnamed.check_hostname, named.check_hostname) == (False, True)
    assert unnamed.verify_mode is named.verify_mode is ssl.CERT_REQUIRED


def test_without_a_ca_file_anything_goes():
    """`verify none` is one context for all."""
    contexts = TlsContexts()
    context = contexts.context(verify=None, named=True)
    assert context is contexts.context(verify=None, named=False)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


def test_a_file_that_changed_is_read_again(tmp_path: Path):
    """Another file of the same name gives another context, and the same one gives the same."""
    path = certificates.issue(tmp_path, "localhost").authority
    contexts = TlsContexts()
    before = contexts.context(verify=str(path), named=False)
    os.utime(path, (1, 1))
    after = contexts.context(verify=str(path), named=False)
    assert after is not before
    assert contexts.context(verify=str(path), named=False) is after


def test_what_was_read_last_is_kept_while_a_file_is_no_good(tmp_path: Path):
    """An emptied or removed file takes no context away; that is said once, and the end of it once."""
    path = certificates.issue(tmp_path, "localhost").authority
    content = path.read_bytes()
    said: list[tuple[str, str]] = []
    contexts = TlsContexts(lambda file, reason: said.append((file, reason)))
    before = contexts.context(verify=str(path), named=False)
    for _ in range(2):
        path.write_bytes(b"")
        assert contexts.context(verify=str(path), named=False) is before
        assert contexts.context(verify=str(path), named=False) is before
        path.unlink()
        assert contexts.context(verify=str(path), named=False) is before
        path.write_bytes(content)
        assert contexts.context(verify=str(path), named=False) is not before
        before = contexts.context(verify=str(path), named=False)
    assert [file for file, _ in said] == [str(path)] * 4
    assert [bool(reason) for _, reason in said] == [True, False] * 2
    assert str(path) in said[0][1]


def test_without_descriptors_what_was_read_last_is_kept(tmp_path: Path):
    """A changed file that cannot be opened for a shortage of ours is read as soon as it can be."""
    path = certificates.issue(tmp_path, "localhost").authority
    contexts = TlsContexts()
    before = contexts.context(verify=str(path), named=False)
    os.utime(path, (1, 1))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        assert contexts.context(verify=str(path), named=False) is before
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert contexts.context(verify=str(path), named=False) is not before


def test_a_file_that_never_was_good_is_an_error_until_it_is(tmp_path: Path):
    """Without anything to keep the error names the file; `inspect` is as strict where there is something."""
    path = tmp_path / "late.pem"
    contexts = TlsContexts()
    with pytest.raises(AuthorityError, match=r"late\.pem: No such file"):
        contexts.context(verify=str(path), named=False)
    path.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(AuthorityError, match=r"late\.pem: .*no certificate"):
            contexts.context(verify=str(path), named=False)
    path.write_bytes(certificates.issue(tmp_path, "localhost").authority.read_bytes())
    assert contexts.context(verify=str(path), named=False)
    contexts.inspect(str(path))
    path.unlink()
    with pytest.raises(AuthorityError, match=r"late\.pem: No such file"):
        contexts.inspect(str(path))
