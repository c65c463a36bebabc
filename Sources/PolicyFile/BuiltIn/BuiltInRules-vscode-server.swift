// Written by scripts/embed-policies from Policies/rules/vscode-server.yaml.

extension BuiltInRules {
  static let vscodeServer = #"""
    # vscode-server: the extension hosts of VS Code's remote server, with the language servers that they start.
    #
    # Use: `adopt: [ { rules: vscode-server, mode: manage } ]` in dormouse.yaml. `policy: developer` is meant for it.
    #
    # The server itself isn't matched: its pty host has your terminals as descendants, and they would sleep as well.
    # A language server of an extension host belongs to the extension host's worker, whatever other rules say.

    adopt:
      - name: vscode-server
        match:
          command:
            - "*/.vscode-server/*--type=extensionHost*"
            - "*/.vscode-server-insiders/*--type=extensionHost*"
            - "*/.vscodium-server/*--type=extensionHost*"
            - "*/.cursor-server/*--type=extensionHost*"
          user: me
          older_than: 10m
    """#
}
