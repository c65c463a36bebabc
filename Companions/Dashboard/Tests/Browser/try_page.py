#!/usr/bin/env python3
"""try_page.py CHROMIUM URL [PICTURES]: uses the dashboard at URL as a person does, by mouse and by keyboard, and prints
`ok WHAT` or `failed WHAT: why` for each step. Its daemon has the workers `web` (hibernated), `notes` (with a snapshot),
and `chatty` (its log has HTML). PICTURES: a directory for screenshots.
"""
import json
import os
import sys
import time
import urllib.parse

from devtools import Page

AUDIT = open(os.path.join(os.path.dirname(__file__), "audit.js"), encoding="utf-8").read()
STATE = "document.querySelector('[data-worker=\"%s\"] article')?.dataset.state"
FOCUS = ("(() => { const e = document.activeElement, s = getComputedStyle(e); return {tag: e.tagName, text: e.textContent, "
         "name: e.getAttribute('aria-label'), card: e.closest('.card')?.dataset.worker ?? null, id: e.id, "
         "seen: s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2 || e.tagName === 'BODY'}; })()")


def check(condition, why):
    if not condition:
        raise RuntimeError(why)


class Trial:
    def __init__(self, page, url, pictures):
        self.page, self.url, self.pictures = page, url, pictures
        self.origin = "http://" + urllib.parse.urlsplit(url).netloc

    def go(self, path):
        self.page.go(self.origin + path)
        self.page.wait("it is connected", f"location.pathname === {json.dumps(urllib.parse.urlsplit(path).path)} && "
                       "!document.getElementById('connection').textContent.startsWith('Connecting')")

    def audit(self):
        problems = self.page.evaluate(AUDIT)
        check(not problems, "; ".join(problems))

    def picture(self, name):
        if self.pictures:
            # Long enough for a line to be seen.
            self.page.evaluate("document.activeElement.blur()")
            self.page.picture(os.path.join(self.pictures, name))

    def overview(self):
        self.go("/")
        self.page.wait("cards", "document.querySelectorAll('.card').length >= 3")

    # The steps, in this order.

    def opens_with_the_printed_address(self):
        self.page.go(self.url)
        self.page.wait("cards", "document.querySelectorAll('.card').length >= 3")
        check(self.page.evaluate("location.href") == self.origin + "/", "the token is in the address")
        check("dormouse" not in self.page.evaluate("document.cookie"), "scripts can read the cookie")
        self.page.wait("the daemon", "document.getElementById('connection').textContent.startsWith('Daemon')")

    def shows_a_snapshot_while_asleep(self):
        self.page.click('[data-worker="notes"] [data-verb="hibernate"]')
        self.page.wait("notes asleep", STATE % "notes" + " === 'hibernated'")
        self.page.wait("the snapshot", "document.querySelector('[data-worker=\"notes\"] pre')?.textContent.includes('python')")

    def a_click_wakes_a_hibernated_worker(self):
        self.page.wait("web asleep", STATE % "web" + " === 'hibernated'")
        self.page.click('[data-worker="web"] [data-verb="wake"]')
        self.page.wait("web awake", "['foreground', 'background'].includes(" + STATE % "web" + ")")
        self.page.wait("the outcome", "document.getElementById('outcome').textContent.includes('web')")
        self.page.wait("the event", "document.getElementById('events').textContent.includes('web')")

    def the_overview_is_accessible(self):
        for scheme in ("light", "dark"):
            self.page.scheme(scheme)
            for width, height in ((1280, 800), (800, 600), (390, 844), (360, 640), (320, 560)):
                self.page.size(width, height)
                for is_open in ("true", "false"):
                    self.page.evaluate(f"document.querySelector('details').open = {is_open}")
                    try:
                        self.audit()
                    except RuntimeError as error:
                        raise RuntimeError(f"{scheme}, {width} × {height}: {error}") from None

    def the_keyboard_reaches_everything(self):
        self.page.size(1280, 800)
        self.page.scheme("light")
        self.overview()
        seen = []
        for _ in range(40):
            self.page.key("Tab", 9)
            focus = self.page.evaluate(FOCUS)
            check(focus["seen"], f"the focus on {focus} isn't visible")
            if focus["tag"] == "BODY" or seen and focus == seen[0]:
                break
            seen.append(focus)
        else:
            raise RuntimeError(f"a trap: {seen[-5:]}")
        cards = {one["card"] for one in seen if one["card"]}
        check(len(cards) == 1, f"Tab stops at the cards {cards}")
        check(seen[0]["text"].startswith("Skip"), f"first is {seen[0]}")
        check(any(one["id"] == "events" for one in seen), "the events can't be scrolled by key")

    def arrows_move_between_cards_and_enter_opens_one(self):
        self.overview()
        self.page.evaluate("document.querySelector('.card .name').focus()")
        first = self.page.evaluate(FOCUS)["card"]
        self.page.key("ArrowRight", 39)
        second = self.page.evaluate(FOCUS)
        check(second["card"] and second["card"] != first and second["seen"], f"{first}, then {second}")
        self.page.key("Tab", 9)
        on_button = self.page.evaluate(FOCUS)
        check(on_button["tag"] == "BUTTON" and on_button["card"] == second["card"], f"{on_button}")
        self.page.key("Home", 36)
        check(self.page.evaluate(FOCUS)["card"] == first, "Home")
        self.page.key("ArrowDown", 40)
        self.page.key("End", 35)
        last = self.page.evaluate("document.querySelector('.cards').lastElementChild.dataset.worker")
        check(self.page.evaluate(FOCUS)["card"] == last, "End")
        self.page.key("Enter", 13, "\r")
        self.page.wait("the worker's page", f"location.pathname === '/workers/{last}'")

    def a_button_works_by_key_and_keeps_the_focus_in_its_card(self):
        self.overview()
        self.page.wait("web awake", "document.querySelector('[data-worker=\"web\"] [data-verb=\"suspend\"]')")
        self.page.evaluate("document.querySelector('[data-worker=\"web\"] [data-verb=\"suspend\"]').focus()")
        self.page.key("Enter", 13, "\r")
        self.page.wait("web suspended", STATE % "web" + " === 'suspended'")
        check(self.page.evaluate(FOCUS)["card"] == "web", "the focus is lost")

    def the_worker_page_shows_log_and_explanation(self):
        self.go("/workers/chatty")
        self.page.wait("the log", "document.getElementById('log').textContent.includes('<img src=x')")
        self.page.wait("the explanation", "document.getElementById('explanation').textContent.length > 20")
        self.page.wait("kinds", "document.getElementById('kinds').textContent.includes('Anonymous')")
        check(self.page.evaluate("document.querySelectorAll('#log img, #log b, #log script').length") == 0,
              "the log's HTML became elements")
        check(self.page.evaluate("window.harmed === undefined"), "a script of the log ran")
        before = self.page.evaluate("document.getElementById('log').childElementCount")
        self.page.wait("new lines", f"document.getElementById('log').childElementCount > {before}")
        self.page.click("#filter")
        for letter in "img":
            self.page.key(letter, ord(letter.upper()), letter)
        self.page.wait("the filter", "[...document.querySelectorAll('#log > div')].every((l) => l.hidden === !l.textContent.includes('img'))")
        check("of" in self.page.evaluate("document.getElementById('log-count').textContent"), "no count")

    def the_worker_page_fills_a_worker_that_runs(self):
        self.go("/workers/chatty")
        self.page.wait("the button", "document.querySelector('[data-verb=\"fill\"]')?.getAttribute('aria-disabled') === 'false'")
        self.page.click("[data-verb=fill]")
        self.page.wait("the answer", "document.getElementById('outcome').textContent.includes('filled')")

    def the_worker_page_is_accessible(self):
        for scheme in ("light", "dark"):
            self.page.scheme(scheme)
            for width, height in ((1280, 800), (390, 844), (320, 560)):
                self.page.size(width, height)
                try:
                    self.audit()
                except RuntimeError as error:
                    raise RuntimeError(f"{scheme}, {width} × {height}: {error}") from None

    def a_button_protects_a_worker_and_its_card_says_so(self):
        self.page.size(1280, 800)
        self.go("/workers/notes")
        button = "document.querySelector('#actions [data-verb=\"%s\"]')"
        self.page.wait("the button", button % "protect" + "?.getAttribute('aria-disabled') === 'false'")
        check(self.page.evaluate(button % "unprotect" + ".hidden"), "both buttons are shown")
        self.page.evaluate(button % "protect" + ".focus()")
        self.page.key("Enter", 13, "\r")
        self.page.wait("the protection", "document.getElementById('facts').textContent.includes('protected on request')")
        self.page.wait("the other button", button % "protect" + ".hidden && !" + button % "unprotect" + ".hidden")
        check(self.page.evaluate("document.activeElement.dataset.verb") == "unprotect", "the focus is lost")
        self.audit()
        self.overview()
        card = "document.querySelector('[data-worker=\"notes\"] .order').textContent"
        self.page.wait("the card", card + ".includes('protected')")
        self.go("/workers/notes")
        self.page.wait("the page", button % "unprotect" + "?.getAttribute('aria-disabled') === 'false'")
        self.page.click('#actions [data-verb="unprotect"]')
        self.page.wait("no protection", "!document.getElementById('facts').textContent.includes('protected on request')")

    def a_missing_worker_is_reported(self):
        self.go("/workers/%3Cb%3Ex")
        self.page.wait("the reason", "document.getElementById('connection').textContent.includes('no worker named <b>x')")

    def pictures_for_the_documentation(self):
        if not self.pictures:
            return
        for name, scheme, width, height, path in (
                ("dashboard-light.png", "light", 1280, 800, "/"), ("dashboard-dark.png", "dark", 1280, 800, "/"),
                ("dashboard-narrow.png", "light", 390, 844, "/"),
                ("dashboard-worker.png", "dark", 1280, 800, "/workers/notes")):
            self.page.scheme(scheme)
            self.page.size(width, height)
            self.go(path)
            time.sleep(2)
            self.picture(name)

    def nothing_failed_and_nothing_came_from_elsewhere(self):
        strange = [one for one in self.page.requests if not one.startswith((self.origin, "about:", "data:", "chrome"))]
        check(not strange, f"requests: {strange}")
        errors = [one for one in self.page.errors if "ERR_INCOMPLETE_CHUNKED" not in one]
        check(not errors, "; ".join(errors))


def main():
    page = Page(sys.argv[1])
    page.size(1280, 800)
    trial = Trial(page, sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
    failures = 0
    try:
        for name, step in vars(Trial).items():
            if name.startswith("_") or name in ("go", "audit", "picture", "overview"):
                continue
            what = name.replace("_", " ")
            try:
                step(trial)
                print(f"ok {what}", flush=True)
            except Exception as error:  # The next steps are tried all the same.
                failures += 1
                print(f"failed {what}: {error}", flush=True)
    finally:
        page.close()
    print(json.dumps({"failures": failures}))
    sys.exit(failures > 0)


main()
