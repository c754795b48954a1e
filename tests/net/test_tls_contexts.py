"""TLS contexts are shared, and follow their CA file."""

import os
import ssl
from pathlib import Path

import pytest
from support import certificates

from appliance.net.tls_contexts import AuthorityError, TlsContexts

pytestmark = pytest.mark.programs


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
    """Another file of the same name gives another context, and a removed one the error that names it."""
    path = certificates.issue(tmp_path, "localhost").authority
    contexts = TlsContexts()
    before = contexts.context(verify=str(path), named=False)
    os.utime(path, (1, 1))
    assert contexts.context(verify=str(path), named=False) is not before
    path.unlink()
    with pytest.raises(AuthorityError, match=r"ca\.pem: No such file"):
        contexts.context(verify=str(path), named=False)
