/// `dormouse integrate`: finds the servers in the configurations of hosts, and changes their
/// commands.
public struct Integration: Sendable {
  public enum Change: Sendable { case wrap, unwrap }

  public var context: HostContext
  public var wrapPrefix: WrapPrefix
  /// True if the user gave options for `wrapPrefix`. Servers that are wrapped with other options
  /// are reported then.
  public var hasGivenOptions = false
  /// The names of the servers to change; all servers if it is empty.
  public var servers: [String] = []
  /// The directory for copies of changed files.
  public var backupDirectory: String

  public init(context: HostContext, wrapPrefix: WrapPrefix, backupDirectory: String) {
    self.context = context
    self.wrapPrefix = wrapPrefix
    self.backupDirectory = backupDirectory
  }

  /// Reads the files of these hosts, and plans the change. Each file that exists is returned once.
  ///
  /// - Parameter change: The change to plan; nil if the servers are only listed.
  public func inspect(_ hosts: [IntegratedHost], for change: Change?) -> [FileOutcome] {
    // The project's directory may be the home directory, and links may lead to the same file.
    var (paths, targets): (Set<String>, Set<String>) = ([], [])
    return hosts.flatMap { host in
      host.files(context).compactMap { file in
        guard paths.insert("\(host) \(file.path)").inserted else { return nil }
        do throws(FileProblem) {
          guard let configFile = try ConfigFile(file.path),
            targets.insert("\(host) \(configFile.target)").inserted
          else { return nil }
          return inspect(configFile, of: file, for: change)
        } catch {
          return FileOutcome(file, problem: error)
        }
      }
    }
  }

  /// The paths at which a host may have a file.
  public func paths(of host: IntegratedHost) -> [String] { host.files(context).map(\.path) }

  private func inspect(
    _ configFile: ConfigFile, of file: HostFile, for change: Change?
  ) -> FileOutcome {
    var outcome = FileOutcome(file)
    outcome.target = configFile.target
    let document: ConfigDocument
    do throws(ConfigSyntaxError) {
      document = try ConfigDocument(configFile.bytes, file.format)
    } catch {
      let (line, column) = error.position(in: configFile.bytes)
      outcome.problem = .syntax(line: line, column: column, reason: error.reason)
      return outcome
    }
    let backup = backup(of: configFile.target, file.format)
    outcome.hasBackup = backup != nil
    var edits: [TextEdit] = []
    var changed: [CommandLocation] = []
    var suited = self
    suited.wrapPrefix = wrapPrefix.suiting(file.host)
    for location in file.find(document.root) {
      let isWanted = servers.isEmpty || servers.contains(location.name)
      let server = ServerEdits(
        location: location, document: document, backup: backup, change: isWanted ? change : nil,
        integration: suited)
      edits += server.edits
      if !server.edits.isEmpty { changed.append(location) }
      outcome.servers.append(server.outcome)
    }
    // An obstacle only matters if the file would change.
    let couldChange = change == nil ? !outcome.servers.isEmpty : !edits.isEmpty
    let obstacle = couldChange ? configFile.obstacle : nil
    guard let change, !edits.isEmpty else {
      outcome.problem = obstacle
      return outcome
    }
    if let obstacle {
      outcome.fail(obstacle)
      return outcome
    }
    do throws(FileProblem) {
      let new = try Self.verified(edits, changed, in: document)
      outcome.edit = FileEdit(
        file: configFile, old: document, new: new, edits: edits, change: change,
        isFirst: !outcome.servers.contains { $0.state == .wrapped },
        isLast: !outcome.servers.contains { $0.isOurs })
    } catch { outcome.fail(error) }
    return outcome
  }

  private func backup(of target: String, _ format: ConfigDocument.Format) -> ConfigDocument? {
    guard let bytes = Backups(directory: backupDirectory).read(target) else { return nil }
    // The copied file could be parsed, so a copy that can't be parsed is damaged, and counts as
    // none.
    return try? ConfigDocument(bytes, format)
  }

  /// Returns the changed document. Throws an error if anything but the commands means something
  /// else.
  static func verified(
    _ edits: [TextEdit], _ changed: [CommandLocation], in document: ConfigDocument
  ) throws(FileProblem) -> ConfigDocument {
    let new: ConfigDocument
    do throws(ConfigSyntaxError) { new = try document.applying(edits) } catch {
      throw .otherMeaning
    }
    for location in changed {
      // An edited command can be read before and afterwards; anything else is a defect.
      guard let before = try? location.command(in: document.root),
        let after = try? location.command(in: new.root), before != after,
        after.suffix(before.count) == before[...] || before.suffix(after.count) == after[...]
      else { throw .otherMeaning }
    }
    // The remainder must mean the same.
    let commands = changed.flatMap(\.paths).map { $0[...] }
    guard new.root.removing(commands).means(theSameAs: document.root.removing(commands)) else {
      throw .otherMeaning
    }
    return new
  }

  /// Changes the file as `inspect` has planned it.
  public func apply(_ outcome: inout FileOutcome) {
    guard outcome.problem == nil, let edit = outcome.edit else { return }
    let backups = Backups(directory: backupDirectory)
    do throws(FileProblem) {
      if edit.change == .wrap, edit.isFirst || !outcome.hasBackup {
        try backups.save(edit.file.bytes, of: edit.file.target)
      }
      try edit.file.replace(with: edit.new.bytes)
      if edit.change == .unwrap, edit.isLast { backups.remove(edit.file.target) }
      outcome.isChanged = true
    } catch { outcome.fail(error) }
  }
}
