#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Opens pages of the site of jobs/local/docs.sh in a browser without a window: the search box, a figure, a reference
entry.

    jobs/docs/look.py FOLDER        FOLDER/html is the site

Exit codes: 0, 1 if something is missing, 77 if Selenium or Chromium is not installed."""
import pathlib
import sys


def main(arguments):
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    try:
        from selenium import webdriver
        from selenium.common.exceptions import WebDriverException
        from selenium.webdriver.chrome.service import Service
        from selenium.webdriver.common.by import By
        from selenium.webdriver.support.wait import WebDriverWait
    except ImportError:
        print("look.py: no Selenium here (Debian: python3-selenium, chromium-driver)", file=sys.stderr)
        return 77
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    try:
        browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    except WebDriverException as error:
        print(f"look.py: no Chromium here: {error.msg.partition(chr(10))[0]}", file=sys.stderr)
        return 77
    site = pathlib.Path(arguments[0]).resolve() / "html"
    faults = []

    def expect(what, found):
        print(f"{'ok' if found else '!!'} {what}")
        if not found:
            faults.append(what)

    with browser:
        browser.get((site / "README.html").as_uri())
        expect("README: search box", browser.find_elements(By.CSS_SELECTOR, "input[name=q]"))
        expect("README: figure", browser.execute_script("return [...document.images].some(image => image.naturalWidth > 100)"))
        expect("README: the look can be changed", browser.find_elements(By.CSS_SELECTOR, ".theme-toggle"))
        browser.get((site / "app/methods.html").as_uri())
        expect("methods: table", browser.find_elements(By.CSS_SELECTOR, "table td"))
        browser.get((site / "reference/comm-exchange-exchange_plan.hpp.html").as_uri())
        entries = [entry.text for entry in browser.find_elements(By.CSS_SELECTOR, "dt.sig")]
        expect("reference: class ExchangePlan", any("class ExchangePlan" in entry for entry in entries))
        browser.get((site / "search.html").as_uri() + "?q=halo")
        found = WebDriverWait(browser, 20).until(lambda one: one.find_elements(By.CSS_SELECTOR, "ul.search li"))
        expect("search: halo", found)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
