"""No page of any kind has a serious barrier that axe-core knows of, in light and dark."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.site.browsing import Visit
from tests.site.fetch_axe import fetch_axe
from tests.site.test_every_page import KINDS

pytestmark = pytest.mark.slow

RUN = """async () => {
  document.querySelectorAll("details").forEach((part) => { part.open = true; });
  const { violations } = await axe.run(document, {
    resultTypes: ["violations"], preload: false,
  });
  return violations.filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html).join(" | ")}`);
}"""


@pytest.fixture(scope="module")
def axe(request: pytest.FixtureRequest) -> str:
    """Fetch axe-core once; without a network skip, or fail where browsers must be there."""
    folder = Path(request.config.cache.mkdir("axe")) if request.config.cache else Path()
    try:
        return fetch_axe(folder)
    except OSError as error:
        if os.environ.get("CBO_REQUIRE_BROWSER"):
            pytest.fail(str(error))
        pytest.skip(f"axe-core cannot be fetched: {error}")


@pytest.mark.parametrize("dark_phone", [False, True])
def test_pages_have_no_serious_barriers(
    visit_to: Callable[..., Visit], site: Path, axe: str, dark_phone: bool
) -> None:
    """One page of each kind."""
    visit = visit_to(site, dark_phone=dark_phone)
    faults = {}
    for name in KINDS:
        page = visit.open(name)
        page.evaluate(axe)
        faults[name] = page.evaluate(RUN)
    assert {name: found for name, found in faults.items() if found} == {}
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert page.evaluate(RUN) == ["button-name: <button></button>"]
