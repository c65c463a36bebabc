import Policy
import YAML

/// Reads `workers:` of all files of a configuration. Each entry is one worker, or several
/// instances.
struct WorkerEntries {
  /// The directory of the configuration.
  var directory: String
  /// The environment of the daemon.
  var environment: [String: String]
  /// True if all files could be read.
  var isComplete: Bool
  var wait = ConfigurationFile.endlessly

  private struct Declared {
    var entries: [String: MappingReader] = [:]
    /// The location of each entry, for messages.
    var locations: [String: String] = [:]
    /// The workers of each entry with instances.
    var instances: [String: [String]] = [:]
  }

  func read(_ files: [MappingReader], into configuration: inout DaemonConfiguration) {
    var declared = Declared()
    for file in files {
      guard let node = file.node("workers"), let reader = file.reader(of: node, called: "workers")
      else { continue }
      for name in reader.order { read(name, in: reader, &declared, into: &configuration) }
    }
    replaceInstances(declared.instances, in: &configuration.workers)
    WorkerChecks(
      workers: configuration.workers, readers: declared.entries, isComplete: isComplete
    ).run()
  }

  private func read(
    _ name: String, in reader: MappingReader, _ declared: inout Declared,
    into configuration: inout DaemonConfiguration
  ) {
    guard let node = reader.node(name) else { return }
    let position = reader.position(ofKey: name)
    let isValid = reader.sink.allows(name, of: "a worker", at: position)
    // Each entry has separate positions, because a name may contain dots, as a path does.
    func entry(_ variables: [String: String] = [:]) -> MappingReader? {
      reader.reader(of: node, called: name, positions: KeyPositions(), variables: variables)
    }
    guard let first = entry() else { return }
    guard let instances = InstanceReader(reader: first).read() else {
      let worker = Entry(name: name, reader: first, position: position)
      return add(worker, &declared, into: &configuration)
    }
    guard isFirst(name, at: position, in: reader.sink, &declared) else { return }
    declared.instances[name] = []
    if instances.isEmpty, !reader.sink.hasErrors {
      // An entry without any instance is checked nevertheless.
      var unused = configuration
      let variables = [InstanceReader.variable: "1"]
      if let only = entry(variables) {
        worker(
          Entry(name: name, variables: variables, reader: only, position: position), into: &unused)
      }
    }
    for (index, instance) in instances.enumerated() {
      let whole = "\(name)-\(instance.name)"
      declared.instances[name]?.append(whole)
      // An error in one instance is usually an error in all of them.
      if index > 0, reader.sink.hasErrors {
        declared.entries[whole] = first
        continue
      }
      if isValid { reader.sink.allows(whole, of: "a worker", at: position) }
      guard let instanceReader = entry(instance.variables) else { return }
      let worker = Entry(
        name: whole, template: name, variables: instance.variables, reader: instanceReader,
        position: position)
      add(worker, &declared, into: &configuration)
    }
  }

  private struct Entry {
    var name: String
    /// The entry's name, if the worker is one of several instances.
    var template: String?
    var variables: [String: String] = [:]
    var reader: MappingReader
    var position: Position?
  }

  private func add(
    _ entry: Entry, _ declared: inout Declared, into configuration: inout DaemonConfiguration
  ) {
    guard isFirst(entry.name, at: entry.position, in: entry.reader.sink, &declared) else {
      // The second worker is read only to report its errors.
      var unused = configuration
      return worker(entry, into: &unused)
    }
    declared.entries[entry.name] = entry.reader
    worker(entry, into: &configuration)
  }

  /// Reports a name that is declared already, by a worker or by an entry with instances.
  private func isFirst(
    _ name: String, at position: Position?, in sink: DiagnosticSink, _ declared: inout Declared
  ) -> Bool {
    guard let first = declared.locations.updateValue(sink.location(position), forKey: name) else {
      return true
    }
    declared.locations[name] = first
    sink.error(
      at: position, "the worker `\(shortened(name))` is declared twice; the first is \(first)",
      suggestion: "give one of them another name, or leave it out")
    return false
  }

  private func worker(_ entry: Entry, into configuration: inout DaemonConfiguration) {
    let read = WorkerReader(
      name: entry.name, reader: entry.reader, directory: directory,
      environment: environment.merging(entry.variables) { $1 }, policy: configuration.policy,
      variables: entry.variables, wait: wait
    ).read(at: entry.position)
    if var worker = read.worker {
      if let template = entry.template, !worker.groups.contains(template) {
        worker.groups.append(template)
      }
      configuration.workers.append(worker)
    }
    let file = entry.reader.sink.source.file
    var keys = entry.reader.positions.keys
    keys[""] = entry.position
    configuration.origins.declarations[entry.name] =
      Origins.Source(layer: .worker, file: file, keys: keys)
    configuration.origins.overrides[entry.name] =
      Origins.Source(layer: .worker, file: file, keys: read.overridden)
  }

  /// Replaces an entry's name in `depends_on` and `wake_with` by the names of all its instances.
  private func replaceInstances(
    _ instances: [String: [String]], in workers: inout [WorkerConfiguration]
  ) {
    if instances.isEmpty { return }
    for index in workers.indices {
      let workerName = workers[index].name
      var needs: [Dependency] = []
      for dependency in workers[index].dependsOn {
        let names = instances[dependency.worker] ?? [dependency.worker]
        for name in names where !needs.contains(where: { $0.worker == name }) {
          needs.append(Dependency(name, dependency.condition))
        }
      }
      workers[index].dependsOn = needs
      var peers: [String] = []
      for peer in workers[index].wakeWith {
        let names = instances[peer].map { $0.filter { $0 != workerName } } ?? [peer]
        peers += names.filter { !peers.contains($0) }
      }
      workers[index].wakeWith = peers
    }
  }
}
