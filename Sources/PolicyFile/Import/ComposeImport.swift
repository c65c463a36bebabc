import YAML

/// Docker's compose file, as far as a process without a container can do the same.
///
/// An image isn't a program on this machine: no service is started by itself before you have checked
/// its command.
public enum ComposeImport {
  /// The text has `services` and no `processes`, whatever its file's name is.
  public static func hasServices(_ text: String) -> Bool {
    let sink = DiagnosticSink(source: SourceText(text: text, file: ""))
    guard case .mapping(let mapping)? = Document.compose(sink)?.root else { return false }
    return mapping["services"] != nil && mapping["processes"] == nil
  }

  public static func convert(text: String, file: String) -> ParseResult<Imported> {
    let sink = DiagnosticSink(source: SourceText(text: text, file: file))
    guard let document = Document.compose(sink),
      let mapping = sink.topMapping(document.root, of: "a compose file")
    else { return sink.result(nil) }
    guard let services = mapping["services"], case .mapping(let entries) = services else {
      sink.error(at: nil, "not a compose file: no `services`")
      return sink.result(nil)
    }
    var top = ForeignMapping(mapping)
    top.skip("version", "name", "services")
    var result = ImportedFile(source: FilePaths.name(of: file))
    result.notes.append(
      "Containers become plain processes: install what each image holds, check the commands and paths, "
        + "and remove `autostart: false`.")
    let names = Set(entries.compactMap { $0.key.scalar?.string })
    for (name, _, service) in sink.namedEntries(of: entries) {
      var one = ComposeService(name: name, service, names)
      result.workers.append(one.worker())
    }
    result.notes += top.leftovers.map { "Not taken over: `\($0)`." }
    return sink.result(result.rendered())
  }
}
