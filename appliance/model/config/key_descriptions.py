"""What each key of a section means: the text below it in our source.

pydantic could keep these texts with the fields, but would read and parse all sources for that at each start.
"""

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise

from appliance.model.config.section import Section


@cache
def key_descriptions(section: type[Section]) -> dict[str, str]:
    """Return the descriptions of a section's own and inherited keys by the names of their fields."""
    texts: dict[str, str] = {}
    for each in reversed(section.__mro__):
        if each is not Section and issubclass(each, Section):
            texts |= _own(each)
    return texts


def _own(section: type[Section]) -> dict[str, str]:
    source = ast.parse(textwrap.dedent(inspect.getsource(section)))
    body = next(each.body for each in source.body if isinstance(each, ast.ClassDef))
    return {
        key.target.id: inspect.cleandoc(text.value.value)
        for key, text in pairwise(body)
        if isinstance(key, ast.AnnAssign)
        and isinstance(key.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
