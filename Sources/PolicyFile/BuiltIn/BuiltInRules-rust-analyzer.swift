// Written by scripts/embed-policies from Policies/rules/rust-analyzer.yaml.

extension BuiltInRules {
  static let rustAnalyzer = #"""
    # rust-analyzer: Rust's language server. Its proc-macro server is its child, and belongs to it.
    #
    # Use: `adopt: [ { rules: rust-analyzer, mode: manage } ]` in dormouse.yaml. `policy: developer` is meant for it.

    adopt:
      - name: rust-analyzer
        match: { name: rust-analyzer, user: me, older_than: 2m }
        # A command, not a server: it ends by itself.
        except: { command: ["* analysis-stats *", "* diagnostics *", "* scip *", "* lsif *"] }
    """#
}
