"""An OVF environment gives its own properties, and nothing else gets through."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.machines.ovf import HEAD, TAIL, environment, section

from appliance.wire.ovf_environment import LIMIT, OvfEnvironmentError, adapters, compose, parse

pytestmark = pytest.mark.pure

PROPERTIES = {"hostname": "lb-1", "lb.address": "10.0.0.11/24", "lb.dns.1": "", "odd": 'a "b" <c> & ü\n'}
GOOD = environment(PROPERTIES)

XML_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\t", exclude_categories=["Cc", "Cs"]))

LAUGHS = b"""<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<Environment xmlns="http://schemas.dmtf.org/ovf/environment/1">&b;</Environment>"""


def test_properties_are_read_as_they_are_written():
    """Every key with its value, with class and instance where they are, whatever stands in a value."""
    assert parse(GOOD) == PROPERTIES


def test_adapters_are_in_the_order_of_the_machine():
    """By the numbers of their units; what has none, or stands elsewhere, is no adapter."""
    more = (
        '<ve:EthernetAdapterSection><ve:Adapter ve:mac="00:50:56:00:00:0A" ve:unitNumber="10"/>'
        '<ve:Adapter ve:mac="00:50:56:00:00:08" ve:unitNumber="8"/><ve:Adapter ve:mac="x"/>'
        '<ve:Adapter ve:mac="x" ve:unitNumber="8"/><ve:Other/></ve:EthernetAdapterSection>'
        '<ve:Adapter ve:mac="x" ve:unitNumber="9"/>'
    )
    assert adapters(environment({}, more=more)) == (
        "00:50:56:aa:bb:cc",
        "00:50:56:00:00:08",
        "00:50:56:00:00:0a",
    )
    assert adapters(b"<Environment/>") == ()


def test_what_is_composed_is_read_again():
    """Whatever stands in a value."""
    assert parse(compose(PROPERTIES)) == PROPERTIES
    assert parse(compose({})) == {}


def test_white_space_around_the_document_is_no_error():
    """Tools print a line break behind it, and files begin with one."""
    assert parse(b"\n" + GOOD + b"\n\n") == parse(GOOD)


def test_properties_of_other_machines_are_not_ours():
    """Those inside an Entity, and in sections of others, do not count."""
    others = f'<Entity oe:id="other">{section({"hostname": "other", "gateway": "10.0.0.1"})}</Entity>'
    foreign = '<ve:PropertySection><Property oe:key="ntp" oe:value="x"/></ve:PropertySection>'
    assert parse(environment({"hostname": "lb-1"}, more=others + foreign)) == {"hostname": "lb-1"}


def test_documents_without_namespace_are_read():
    """Whoever writes one by hand may leave the namespaces out."""
    data = (
        b'<Environment><PropertySection><Property key="hostname" value="a"/></PropertySection></Environment>'
    )
    assert parse(data) == {"hostname": "a"}


def test_first_of_two_counts_and_what_has_no_key_does_not():
    """A key that stands there twice has its first value; without a value it is empty."""
    more = '<PropertySection><Property oe:key="a" oe:value="2"/><Property oe:value="3"/></PropertySection>'
    data = environment({"a": "1"}, more=more + '<PropertySection><Property oe:key="b"/></PropertySection>')
    assert parse(data) == {"a": "1", "b": ""}


def test_other_elements_in_a_section_are_passed_over():
    """Only Property elements are properties."""
    assert parse(f"{HEAD}<PropertySection><Info>x</Info></PropertySection>{TAIL}".encode()) == {}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not XML"),
        (b"hostname=lb-1", "not XML"),
        (b"<ovf:Envelope/>", "not XML"),
        (b"<Envelope/>", "<Envelope>"),
        (b'<Environment xmlns="urn:other"/>', "urn:other"),
        (b"<Environment>&amp;&laugh;</Environment>", "not XML"),
        (b'<?xml version="1.0" encoding="no-such"?><Environment/>', "not XML"),
        (b'<?xml version="1.0" encoding="euc-jp"?><Environment/>', "not XML"),
        (LAUGHS, "DOCTYPE"),
        (b'<!DOCTYPE Environment SYSTEM "file:///etc/passwd"><Environment/>', "DOCTYPE"),
        (GOOD + GOOD, "not XML"),
        (GOOD + b" " * LIMIT, "bytes"),
    ],
)
def test_anything_else_is_refused(data: bytes, message: str):
    """What is no OVF environment, has a DOCTYPE or is too large is an error that says so."""
    with pytest.raises(OvfEnvironmentError, match=message):
        parse(data)


def test_depth_costs_no_more_than_length():
    """As many elements inside each other as fit in are read in an instant, and not in their square."""
    deep = LIMIT // 8
    assert parse(b"<Environment>" + b"<a>" * deep + b"</a>" * deep + b"</Environment>") == {}


def test_no_part_of_a_document_passes_for_the_whole():
    """Cut anywhere before its end it is refused."""
    whole = GOOD.rstrip()
    for size in range(len(whole)):
        with pytest.raises(OvfEnvironmentError):
            parse(whole[:size])


@given(st.binary(max_size=300))
def test_garbage_never_escapes(data: bytes):
    """Any bytes give properties or OvfEnvironmentError."""
    with suppress(OvfEnvironmentError):
        parse(data)


@given(st.integers(0, len(GOOD) - 1), st.binary(min_size=1, max_size=4))
def test_damage_never_escapes(at: int, damage: bytes):
    """A document with some bytes replaced gives properties or OvfEnvironmentError."""
    with suppress(OvfEnvironmentError):
        parse(GOOD[:at] + damage + GOOD[at + len(damage) :])


@given(st.dictionaries(XML_TEXT, XML_TEXT, max_size=5))
def test_what_is_written_is_read(properties: dict[str, str]):
    """Whatever XML can carry comes back."""
    assert parse(environment(properties)) == properties
