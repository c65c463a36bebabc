// Written by scripts/embed-policies from Policies/rules/tsserver.yaml.

extension BuiltInRules {
  static let tsserver = #"""
    # tsserver: TypeScript's language server, one or two for each window of an editor.
    #
    # Use: `adopt: [ { rules: tsserver, mode: manage } ]` in dormouse.yaml. `policy: developer` is meant for it.

    adopt:
      - name: tsserver
        # node …/typescript/lib/tsserver.js …; its typingsInstaller is its child, and belongs to it.
        match: { command: "*/tsserver.js*", user: me, older_than: 2m }
    """#
}
