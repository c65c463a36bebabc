// Written by scripts/embed-policies from Policies/rules/gopls.yaml.

extension BuiltInRules {
  static let gopls = #"""
    # gopls: Go's language server, also one that editors share (`-remote=auto`).
    #
    # Use: `adopt: [ { rules: gopls, mode: manage } ]` in dormouse.yaml. `policy: developer` is meant for it.

    adopt:
      - name: gopls
        match: { name: gopls, user: me, older_than: 2m }
    """#
}
