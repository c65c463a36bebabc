extension NameRule {
  /// A name for the worker of a command line: `x` for `python3 x.py`, `server-github` for `npx -y
  /// @modelcontextprotocol/server-github`. It is valid and at most 40 bytes; `worker` for an empty
  /// command.
  public static func name(of command: [String]) -> String {
    valid(CommandName(command[...]).text ?? command.first.map(CommandName.last) ?? "")
  }

  /// Whether the command runs a script of the package in the working directory, as `npm start` and
  /// `yarn dev` do. The name of such a script says nothing about the worker.
  public static func runsPackageScript(_ command: [String]) -> Bool {
    guard let program = command.first.map(CommandName.last),
      ["bun", "npm", "pnpm", "yarn"].contains(program)
    else { return false }
    let arguments = command.dropFirst().filter { !$0.hasPrefix("-") }
    guard let verb = arguments.first else { return false }
    if ["run", "run-script"].contains(verb) {
      return arguments.dropFirst().first.map(isPlainName) == true
    }
    if ["start", "restart", "test"].contains(verb) { return true }
    return program != "npm" && isPlainName(verb)
      && !["add", "create", "dlx", "exec", "install", "node", "x"].contains(verb)
  }

  /// Whether the text names neither a file nor a package.
  private static func isPlainName(_ text: String) -> Bool { !text.contains { "./@".contains($0) } }

  /// The text as a valid name, with characters that aren't allowed replaced.
  private static func valid(_ text: String) -> String {
    let safe = text.unicodeScalars.prefix(40).map { scalar -> Character in
      guard scalar.isASCII, allows(UInt8(scalar.value)) else { return "_" }
      return Character(scalar)
    }
    guard let first = safe.first else { return "worker" }
    return first == "." || first == "-" ? "w\(String(safe.prefix(39)))" : String(safe)
  }
}

/// What a command line runs: the program, or the script that it interprets.
private struct CommandName {
  /// The name; `nil`: the command line doesn't say.
  let text: String?

  /// Programs that run what the next argument names.
  private static let starters: Set<String> = [
    "bash", "bun", "bunx", "dash", "deno", "dotnet", "env", "java", "lua", "nice", "node", "nodejs",
    "nodemon", "nohup", "npm", "npx", "perl", "php", "pipx", "pnpm", "pypy", "pypy3", "python",
    "ruby", "setsid", "sh", "stdbuf", "ts-node", "tsx", "uv", "uvx", "yarn", "zsh",
  ]
  /// Options of these programs whose value is the next argument.
  private static let valued: Set<String> = [
    "--class-path", "--from", "--import", "--package", "--python", "--require", "--with", "-W",
    "-X", "-classpath", "-cp", "-n", "-p", "-r",
  ]
  /// Verbs of these programs that stand before what they run.
  private static let verbs: Set<String> = ["dlx", "exec", "run", "tool", "x"]
  private static let endings: Set<Substring> = [
    "cjs", "dll", "jar", "js", "lua", "mjs", "php", "pl", "py", "pyz", "rb", "sh", "ts",
  ]
  /// Names of scripts that say nothing. The name of the directory is better.
  private static let general: Set<String> = [
    "__main__", "bin", "build", "cli", "dist", "index", "lib", "main", "out", "src",
  ]

  init(_ command: ArraySlice<String>) {
    guard let path = command.first else {
      text = nil
      return
    }
    let program = Self.last(path)
    text =
      Self.isStarter(program)
      ? Self.next(command.dropFirst(), isPython: program.hasPrefix("py")) : Self.script(path)
  }

  private static func isStarter(_ program: String) -> Bool {
    // Versions have names of their own, such as `python3.12`.
    starters.contains(program) || program.hasPrefix("python3") || program.hasPrefix("python2")
  }

  private static func next(_ arguments: ArraySlice<String>, isPython: Bool) -> String? {
    var remaining = arguments
    while let argument = remaining.first {
      if isPython, argument == "-m", let module = remaining.dropFirst().first { return module }
      // The text of a program is no name.
      if ["-c", "-e", "--eval"].contains(argument) { return nil }
      let isVariable = argument.contains("=") && !argument.hasPrefix("/")
      if argument.hasPrefix("-") || isVariable || verbs.contains(argument) {
        remaining = remaining.dropFirst(valued.contains(argument) ? 2 : 1)
        continue
      }
      return CommandName(remaining).text ?? last(argument)
    }
    return nil
  }

  /// The last component of a path.
  static func last(_ path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? ""
  }

  /// The name of a script's file, or of a package: `server` for `@scope/server@1.2`.
  private static func script(_ path: String) -> String? {
    var components = path.split(separator: "/").filter { $0 != "." && $0 != ".." }.map(stem)
    while components.count > 1, let name = components.last, general.contains(name) {
      components.removeLast()
    }
    return components.last.map { $0.hasPrefix("@") ? String($0.dropFirst()) : $0 }
  }

  private static func stem(_ component: Substring) -> String {
    var component = component
    if let at = component.dropFirst().firstIndex(of: "@") { component = component[..<at] }
    if let dot = component.lastIndex(of: "."), dot != component.startIndex,
      endings.contains(component[dot...].dropFirst())
    {
      component = component[..<dot]
    }
    return String(component)
  }
}
