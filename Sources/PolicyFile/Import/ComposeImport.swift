import YAML

/// Imports Docker's compose file, as far as a process without a container can do the same.
///
/// An image isn't a program on this machine. A service is started automatically only if its command
/// is such a program, and if that is true of the services on which it depends, too.
public enum ComposeImport {
  /// Converts a file.
  ///
  /// - Parameters:
  ///   - environmentFile: the text of the `.env` beside it, which compose reads, too. `nil`: there
  ///     is none.
  ///   - isProgram: returns true if this machine has a program of that name or path. `nil`: no
  ///     service is started.
  public static func convert(
    text: String, file: String, environmentFile: String? = nil,
    isProgram: ((String) -> Bool)? = nil
  ) -> ParseResult<ImportedConfiguration> {
    let sink = DiagnosticSink(source: SourceText(text: text, file: file))
    guard let mapping = sink.topMapping(of: "a compose file", mergesKeys: true) else {
      return sink.result(nil)
    }
    var top = ForeignMapping(mapping)
    top.skip("version", "name", "services")
    let others = includes(&top)
    guard let services = mapping["services"], case .mapping(let entries) = services else {
      if let position = mapping["include"]?.position, !others.isEmpty {
        sink.error(
          at: position, "the file has no `services` of its own and only includes others",
          suggestion: "import those files: \(others.joined(separator: ", "))")
      } else {
        sink.error(at: nil, "not a compose file: no `services`")
      }
      return sink.result(nil)
    }
    var result = ImportedFile(source: FilePaths.name(of: file))
    result.notes.append(
      "Containers become plain processes: install what each image holds, check the commands and "
        + "paths, and remove `autostart: false` where it is.")
    if !others.isEmpty {
      result.notes.append("`include`: import those files, too: \(others.joined(separator: ", ")).")
    }
    let variables = ForeignVariables(environmentFile: environmentFile)
    let names = Set(entries.compactMap { $0.key.scalar?.string })
    var needs: [[String]] = []
    for (name, _, service) in sink.namedEntries(of: entries) {
      var one = ComposeService(
        name: name, service, names: names, variables: variables, sink: sink)
      var worker = one.worker()
      if let isProgram {
        let obstacle = one.obstacle(isProgram)
        worker.isStopped = obstacle != nil
        if let obstacle { worker.notes.append("Not started by itself: \(obstacle).") }
      }
      result.workers.append(worker)
      needs.append(one.needs)
    }
    stopDependents(&result.workers, needs)
    // The mappings `x-…` only contain anchors.
    result.notes += top.leftovers.filter { !$0.hasPrefix("x-") }.map { "Not taken over: `\($0)`." }
    result.notes += variables.notes
    return sink.result(result.rendered())
  }

  /// Stops the workers that depend on one that isn't started.
  private static func stopDependents(_ workers: inout [ImportedWorker], _ needs: [[String]]) {
    while true {
      let stopped = Set(workers.filter(\.isStopped).map(\.name))
      let next = workers.indices.first { index in
        !workers[index].isStopped && needs[index].contains(where: stopped.contains)
      }
      guard let next else { return }
      let missing = quoted(needs[next].filter(stopped.contains))
      workers[next].isStopped = true
      workers[next].notes.append("Not started by itself: it needs \(missing), which isn't.")
    }
  }

  /// Returns the files of `include`. Each entry is a path, or a mapping with one or several.
  private static func includes(_ top: inout ForeignMapping) -> [String] {
    guard let node = top.node("include") else { return [] }
    return (node.sequence?.items ?? [node]).flatMap { item -> [String] in
      let path = item.mapping?["path"] ?? item
      return (path.sequence?.items ?? [path]).compactMap(\.scalar?.string)
    }.map { "`\(shortened($0))`" }
  }
}
