// Written by scripts/embed-policies from Policies/rules/pyright.yaml.

extension BuiltInRules {
  static let pyright = #"""
    # pyright: Python's language servers pyright, basedpyright and Pylance.
    #
    # Use: `adopt: [ { rules: pyright, mode: manage } ]` in dormouse.yaml. `policy: developer` is meant for it.

    adopt:
      - name: pyright
        match:
          command: ["*pyright*langserver*", "*/ms-python.vscode-pylance-*/server.bundle.js*"]
          user: me
          older_than: 2m
    """#
}
