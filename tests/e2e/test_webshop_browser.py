"""A person's purchase in a real browser: search, open, read, choose, buy, see the score."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import urllib.request

import pytest

pytest.importorskip("flask", reason="the web shop needs the extra 'web'")
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("chromium") and shutil.which("chromedriver")), reason="no Chromium"),
]

SERVER = """
import sys
from seedbench.envs.webshop.env import Options, WebShop
from seedbench.envs.webshop.site import play
play(WebShop(Options()), "mini-test", port=0, seed=0)
"""


@pytest.fixture(scope="module")
def address():
    server = subprocess.Popen([sys.executable, "-u", "-c", SERVER], stdout=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    yield line.split(" at ")[1].split()[0]
    server.terminate()
    server.wait(10)


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    driver.implicitly_wait(5)
    yield driver
    driver.quit()


def press(browser, text: str) -> None:
    browser.find_element("xpath", f"//button[normalize-space()='{text}']").click()


def test_a_purchase_from_start_to_score(address, browser):
    from seedbench.envs.webshop import buyer
    from seedbench.envs.webshop.env import Options, WebShop
    from seedbench.envs.webshop.memory import read_wish

    env = WebShop(Options())
    goal = env.goal(env.tasks("mini-test")[5])
    browser.get(address)
    browser.find_element("name", "number").send_keys("5")
    browser.find_element("id", "start").click()
    instruction = browser.find_element("id", "instruction").text
    assert instruction == goal.instruction
    wish = read_wish(instruction)
    browser.find_element("id", "query").send_keys(buyer.best_query(env.world.shop, goal))
    browser.find_element("id", "search").click()
    hits = browser.find_elements("css selector", "ol.hits li")
    assert 1 <= len(hits) <= 5
    product = env.world.shop.by_asin[goal.asin]
    wanted = next(h for h in hits if product.title in h.text and f"${product.price:.2f}" in h.text)
    wanted.find_element("tag name", "button").click()
    assert browser.find_element("tag name", "h1").text == product.title
    press(browser, "Description")
    assert product.description in browser.find_element("tag name", "main").text
    press(browser, "< Prev")
    for value in wish.options.values():
        press(browser, value)
    chosen = [b.text for b in browser.find_elements("css selector", "button.chosen")]
    assert sorted(chosen) == sorted(wish.options.values())
    press(browser, "Buy Now")
    assert browser.find_element("id", "score").text == "1.0"
    assert not [
        e for e in browser.get_log("browser") if e["level"] == "SEVERE" and "favicon" not in e["message"]
    ]


def test_markup_in_a_query_runs_nothing(address, browser):
    browser.get(address)
    browser.find_element("id", "start").click()
    browser.find_element("id", "query").send_keys("<script>document.title='owned'</script>")
    browser.find_element("id", "search").click()
    time.sleep(0.2)
    assert browser.title == "WebShop" and "0 results" in browser.find_element("tag name", "h1").text


def test_security_headers_are_served(address):
    with urllib.request.urlopen(address) as response:
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
