// Written by scripts/embed-policies from Policies/rules/chrome.yaml.

extension BuiltInRules {
  static let chrome = #"""
    # chrome: the processes that show pages in Chrome, Chromium and programs that are built on it.
    #
    # Leave it in shadow mode unless you have tried it: Chrome's sandbox doesn't let an ordinary user's daemon see what
    # such a process waits for, so it can only be suspended, and the browser reports a page that is shown meanwhile as
    # unresponsive. `status` shows what the rule would free.

    adopt:
      - name: chrome
        match:
          command: "*--type=renderer*"
          name: ["chrome*", "chromium*", "msedge*", "brave*", "electron*", code]
          user: me
          older_than: 30m
          min_footprint: 64MB
    """#
}
