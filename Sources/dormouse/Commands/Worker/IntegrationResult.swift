import Control
import Integrate

/// The output of `dormouse integrate`.
struct IntegrationResult {
  var files: [FileOutcome]
  var hosts: [IntegratedHost]
  /// The change; nil if the servers were only listed.
  var change: Integration.Change?
  var isDryRun: Bool
  var integration: Integration

  private var view: IntegrationText {
    IntegrationText(
      home: integration.context.home, width: Terminal.width, color: Terminal.showsColor)
  }

  private var servers: [ServerOutcome] { files.flatMap(\.servers) }

  /// The number of servers in files that were changed, or would be.
  private var changed: Int {
    files.filter { isDryRun ? $0.problem == nil : $0.isChanged }.flatMap(\.servers)
      .count { $0.state == .newlyWrapped || $0.state == .unwrapped }
  }

  private var snippets: [IntegrationReport.Snippet] {
    hosts.compactMap { host in
      host.snippet(integration.wrapPrefix).map { .init(host: host.rawValue, text: $0) }
    }
  }

  /// The reason why nothing could be done; nil if it could be done, or was done before.
  var failure: String? {
    guard let change, snippets.isEmpty else { return nil }
    if let name = integration.servers.first(where: { name in
      !servers.contains { $0.name == name }
    }) {
      return "there is no server `\(escaped(name))` in the files of \(titles)"
    }
    if !integration.servers.isEmpty,
      let server = servers.first(where: {
        integration.servers.contains($0.name) && $0.refusal != nil
      }), let refusal = server.refusal
    {
      return "`\(escaped(server.name))` isn't changed: \(refusal.text)"
    }
    guard files.isEmpty, change == .wrap else { return nil }
    let paths = hosts.count == 1 ? hosts.flatMap(integration.paths) : []
    let searched = paths.map(view.short).joined(separator: ", ")
    return "no server is configured in the files of \(titles)"
      + (searched.isEmpty ? "" : "; looked at \(searched)")
  }

  private var titles: String {
    hosts.count == 1 ? hosts.map(\.title).joined() : "these hosts"
  }

  var text: [String] {
    if let snippet = snippets.first {
      return [
        "\(titles) is configured by a program, which isn't changed. Write this:", "", snippet.text,
      ]
    }
    if isDryRun {
      let lines = files.flatMap(view.difference)
      return lines + (lines.isEmpty ? [] : [""]) + reasons + wrapped(summary, to: Terminal.width)
    }
    // The other files are reported on standard error.
    let shown = change == nil ? files : files.filter { $0.problem == nil }
    if shown.isEmpty {
      let hasReason = failure != nil || !files.isEmpty
      return hasReason ? [] : wrapped(summary, to: Terminal.width)
    }
    return view.lines(shown) + [""] + wrapped(summary, to: Terminal.width)
      + notes.flatMap { wrapped($0, to: Terminal.width) }
  }

  /// With --dry-run, the reasons why commands would stay as they are.
  private var reasons: [String] {
    let lines = files.flatMap { file in
      file.servers.compactMap { server in
        // Only files that would be changed are of interest.
        file.problem != nil
          ? nil : server.refusal.map { "\(escaped(server.name)): not changed: \($0.text)" }
      }
    }
    return lines.isEmpty ? [] : lines.flatMap { wrapped($0, to: Terminal.width) } + [""]
  }

  private var summary: String {
    let count = counted(changed, "server")
    switch change {
    case nil where files.isEmpty: return "No servers found in the configuration of \(titles)."
    case nil:
      let possible = servers.count { $0.state == .notWrapped && $0.refusal == nil }
      return possible == 0
        ? "Nothing to wrap."
        : "`dormouse integrate HOST` wraps \(counted(possible, "server")); --dry-run shows the "
          + "changes first."
    case .wrap where changed == 0: return "Nothing to wrap."
    case .unwrap where changed == 0: return "Nothing to undo."
    case .wrap where isDryRun: return "\(count) would be wrapped. Nothing was changed."
    case .unwrap where isDryRun: return "\(count) would be unwrapped. Nothing was changed."
    case .wrap:
      return "\(count) wrapped; --undo puts the commands back. "
        + "The change has effect when the host starts the servers again."
    case .unwrap: return "\(count) unwrapped."
    }
  }

  private var notes: [String] {
    guard change == .wrap else { return [] }
    return files.filter { $0.isChanged && $0.isOfProject }.map {
      "\(view.short($0.path)) belongs to a project: its other users need "
        + "\(escaped(integration.wrapPrefix.program)), too."
    }
  }

  var report: IntegrationReport {
    let problem = change == nil ? nil : files.lazy.compactMap(\.problem).first
    let code =
      change == nil
      ? "listed"
      : problem?.code ?? (changed == 0 ? "nothing_to_do" : isDryRun ? "planned" : "done")
    return IntegrationReport(
      code: code, text: failure ?? summary, words: integration.wrapPrefix.all,
      files: files.map(\.report), snippets: snippets)
  }
}
