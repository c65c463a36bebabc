import Policy
import ShippedPolicies

/// Reads a policy file and the policies that it extends. Each file is read over the one that it
/// names in `extends`, so all of them are read again whenever the first one is.
struct PolicyChain {
  /// The maximum number of files. A person has to read them one after the other.
  static let longest = 5

  var library: PolicyLibrary
  /// The files that led to this one, the first one first.
  var files: [String] = []

  /// Reads a policy.
  ///
  /// - Parameter name: the name of a policy that has no `name`. `nil`: it has the name of its file.
  func parse(text: String, file: String, name: String? = nil) -> ParseResult<LoadedPolicy> {
    var chain = self
    chain.files.append(file)
    let sink = DiagnosticSink(source: SourceText(text: text, file: file))
    guard let reader = sink.topReader(of: "a policy") else { return sink.result(nil) }
    var loaded =
      chain.base(of: reader) ?? LoadedPolicy(policy: LifecyclePolicy(), origins: Origins())
    let stem = name ?? FilePaths.stem(of: file)
    loaded.policy.name = NameRule.allows(stem) ? stem : LifecyclePolicy().name
    loaded.policy = PolicyReader(scope: .policy).read(reader, over: loaded.policy)
    loaded.origins.machine.append(
      Origins.Source(layer: .policy, file: file, keys: reader.positions.settings))
    return sink.result(loaded)
  }

  func load(path: String) -> ParseResult<LoadedPolicy> {
    switch FileContents.read(path) {
    case .success(let text): parse(text: text, file: path)
    case .failure(let problem): ParseResult(value: nil, diagnostics: [problem])
    }
  }

  private var last: String { files.last ?? "" }

  /// Reads the policy that the last file's `extends` names. Errors in the reference or the policy
  /// are reported in that file.
  private func base(of top: MappingReader) -> LoadedPolicy? {
    guard let reference = top.read("extends", as: .extended) else { return nil }
    let position = top.positions["extends"]
    switch PolicyLibrary.isPath(reference) ? file(reference) : named(reference) {
    case .failure(let problem):
      top.sink.error(
        at: position, "`extends` \(problem.message ?? "is wrong")", suggestion: problem.suggestion)
      return nil
    case .success(let result):
      top.sink.add(result.diagnostics)
      if result.value == nil {
        top.sink.error(at: position, "the policy `\(shortened(reference))` can't be extended")
      }
      var base = result.value
      // Its name and its own `extends` aren't values of this policy.
      base?.origins.forget(["name", "extends"])
      return base
    }
  }

  private func file(_ reference: String) -> Result<ParseResult<LoadedPolicy>, Problem> {
    let path = FilePaths.resolve(reference, from: FilePaths.directory(of: last))
    if let problem = problem(with: path) { return .failure(problem) }
    guard FileContents.exists(path) else {
      let beside = FileContents.names(in: FilePaths.directory(of: path))
        .filter { $0.hasSuffix(".yaml") || $0.hasSuffix(".yml") }
      return .problem(
        "names a file that doesn't exist: `\(shortened(path))`",
        suggestion: didYouMean(FilePaths.name(of: path), among: beside))
    }
    return .success(load(path: path))
  }

  /// Reads the policy of a name. A file may extend a policy of its own name: the next one in the
  /// order of the directories, or the one in the executable.
  private func named(_ name: String) -> Result<ParseResult<LoadedPolicy>, Problem> {
    let isCurrent = { (path: String) in FilePaths.normalized(path) == FilePaths.normalized(last) }
    let paths = library.paths(of: name)
    let file = PolicyLibrary.builtInFile(name)
    if let path = paths.first(where: { !isCurrent($0) }) {
      return problem(with: path).map { .failure($0) } ?? .success(load(path: path))
    }
    if let text = ShippedPolicies.policy(name), !isCurrent(file) {
      return problem(with: file).map { .failure($0) }
        ?? .success(parse(text: text, file: file, name: name))
    }
    if !paths.isEmpty { return .failure(Self.itself) }
    let missing = library.missing(name)
    let beside = FilePaths.resolve("\(name).yaml", from: FilePaths.directory(of: last))
    return .problem(
      "names no policy: \(missing.message)",
      suggestion: FileContents.exists(beside)
        ? "write `\(name).yaml` for the file beside this one" : missing.suggestion)
  }

  private static let itself = Problem(
    message: "names the policy itself", suggestion: "leave `extends` out, or name another policy")

  /// Returns the reason why a file can't be the next one.
  private func problem(with path: String) -> Problem? {
    let normalized = files.map(FilePaths.normalized)
    if let first = normalized.firstIndex(of: FilePaths.normalized(path)) {
      if first == files.count - 1 { return Self.itself }
      let circle = (files[first...] + [path]).map { "`\(shortened(FilePaths.name(of: $0)))`" }
      return Problem(
        message: "makes a circle: \(circle.joined(separator: " extends "))",
        suggestion: "leave `extends` out in one of them")
    }
    guard files.count < Self.longest else {
      return Problem(
        message: "would make a chain of more than \(Self.longest) policies",
        suggestion: "join some of them in one file")
    }
    return nil
  }
}

extension Converter where Value == String {
  /// The value of `extends`. A path is relative to the file that contains it.
  fileprivate static var extended: Converter {
    .text("the name of a policy, or the path of a policy file").checked { text in
      text.isEmpty ? .wrongKind : homeProblem(text)
    }
  }
}
