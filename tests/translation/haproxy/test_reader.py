"""haproxy.cfg as a whole: the configuration that comes out, and a word on each of its lines."""

import pytest
from support.translation.haproxy_files import NO_FILES

from appliance.model.config.configuration import Config
from appliance.model.document.tree import plain
from appliance.translation.haproxy.reader import translate
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure

SMALL = """\
defaults
  mode tcp
  timeout connect 10s
  timeout client 1m
  timeout server 1m

frontend api
  bind *:6443
  default_backend masters

backend masters
  server master-0 10.0.0.34:6443 check
  server master-1 :6443 check
"""


def test_a_file_becomes_a_configuration():
    """Frontends, pools and timeouts are those of the file; each line has its outcome."""
    found = translate(SMALL, source="haproxy.cfg", environment={}, read=NO_FILES)
    config = Config.model_validate(plain(found.root))
    assert config.api is not None
    assert [str(each) for each in config.api.frontends["api"].bind] == ["0.0.0.0:6443"]
    assert list(config.pools["masters"].servers.by_name) == ["master-0"]
    assert config.defaults.timeouts.client == 60.0
    assert [each.place.line for each in found.lines] == [1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13]
    assert found.lines[-1].outcome is Outcome.IGNORED
    assert found.refused == ()


def test_an_empty_file_is_an_empty_configuration():
    """That is OpenShift's first moment: nothing is said, and nothing is wrong."""
    found = translate(b"", source="haproxy.cfg", environment={}, read=NO_FILES)
    assert plain(found.root) == {}
    assert found.lines == ()
