/// Something that there should be less of.
struct Finding: Hashable {
  /// The word at the beginning of a line of the ratchet.
  var rule: String
  /// What is counted together.
  var area: String
  var amount = 1
  /// For the message.
  var detail: String
}

/// Each rule looks at one file; `repeatedNames` at all.
enum TidyRules {
  static let all: [@Sendable (SourceFile) -> [Finding]] = [
    unreasonedTry, libcCalls, longFile, longFunctions, vocabulary, PhraseRule.messages,
    ParameterRule.rule, NameRules.booleans, NameRules.vagueNames, CommentRules.columns,
    CommentRules.beginning,
  ]

  /// `try?` hides an error. A comment on its line, or on one of the two lines before it, says why
  /// it may.
  static let unreasonedTry: @Sendable (SourceFile) -> [Finding] = { file in
    guard file.isSwift, file.path.hasPrefix("Sources/") else { return [] }
    return file.lines.indices.compactMap { number in
      let line = file.lines[number]
      guard line.utf8Range(of: "try?") != nil, hasTry(Array(SourceFile.code(line).utf8)) else {
        return nil
      }
      let isExplained = file.lines[max(0, number - 2)...number].contains {
        SourceFile.code($0).endIndex < $0.endIndex
      }
      return isExplained
        ? nil
        : Finding(rule: "try?", area: file.area, detail: "\(file.path):\(number + 1): \(line)")
    }
  }

  /// The keyword: not `Entry?`.
  private static func hasTry(_ code: [UInt8]) -> Bool {
    code.indices.contains { index in
      code[index...].starts(with: "try?".utf8) && (index == 0 || !isIdentifier(code[index - 1]))
    }
  }

  private static let calls: Set<String> = [
    "accept", "access", "bind", "chdir", "chmod", "chown", "clock_gettime", "closedir", "connect",
    "dup", "dup2", "dup3", "epoll_ctl", "epoll_wait", "execv", "execve", "faccessat", "fchmod",
    "fchown", "fcntl", "fdatasync", "fork", "fstat", "fstatvfs", "fsync", "ftruncate", "getpwnam",
    "getpwuid", "getrlimit", "getsockname", "getsockopt", "inotify_add_watch", "inotify_init1",
    "ioctl", "kill", "killpg", "lchown", "link", "listen", "lseek", "lstat", "madvise", "mkdir",
    "mkdtemp", "mkfifo", "mknod", "mkstemp", "mlock", "mmap", "mprotect", "mremap", "msync",
    "munmap", "nanosleep", "open", "openat", "opendir", "pipe", "poll", "posix_fadvise",
    "posix_fallocate", "posix_spawn", "ppoll", "prctl", "pread", "pthread_create",
    "pthread_detach", "pthread_join", "pthread_kill", "pthread_sigmask", "pwrite", "read",
    "readdir", "readlink", "realpath", "recv", "recvfrom", "recvmsg", "rename", "renameat",
    "rmdir", "sched_setaffinity", "send", "sendmsg", "sendto", "setpgid", "setpriority",
    "setrlimit", "setsid", "setsockopt", "shutdown", "sigaction", "sigaddset", "sigemptyset",
    "sigprocmask", "sigwait", "sleep", "socket", "socketpair", "stat", "statfs",
    "statvfs", "symlink", "sysconf", "tcgetattr", "tcsetattr", "umask", "uname",
    "unlink", "unlinkat", "usleep", "utimensat", "wait4", "waitid", "waitpid", "write", "writev",
  ]
  /// The module that is there to wrap them, and those that can't link it.
  private static let systemModules = ["Sources/Linux/"]

  /// Calls of the C library where `Linux` has, or should have, a typed wrapper. What can't fail and
  /// changes nothing (`getpid`, `geteuid`, `isatty`, `strerror`) isn't in the list, nor is
  /// `signal`.
  static let libcCalls: @Sendable (SourceFile) -> [Finding] = { file in
    guard file.isSwift, file.path.hasPrefix("Sources/"),
      !systemModules.contains(where: file.path.hasPrefix),
      file.lines.contains(where: { $0 == "import Glibc" || $0 == "  import Glibc" })
    else { return [] }
    // Inside of a type with a method of that name, only `Glibc.read(` is the C library's.
    let declared = Set(file.lines.compactMap(ParameterRule.declared))
    var findings: [Finding] = []
    for (number, line) in file.lines.enumerated() where line.utf8.contains(UInt8(ascii: "(")) {
      let code = Array(SourceFile.code(line).utf8)
      for name in calledFunctions(code, declared: declared) where calls.contains(name) {
        findings.append(
          Finding(
            rule: "libc", area: file.area,
            detail: "\(file.path):\(number + 1): \(name)"))
      }
    }
    return findings
  }

  /// Names before a parenthesis that aren't a member's, a declaration's, an empty struct's
  /// (`stat()`), a function's that throws, or in a string.
  static func calledFunctions(_ code: [UInt8], declared: Set<String> = []) -> [String] {
    var names: [String] = []
    var start: Int?
    var isInString = false
    for (index, byte) in code.enumerated() {
      if byte == UInt8(ascii: "\""), index == 0 || code[index - 1] != UInt8(ascii: "\\") {
        isInString.toggle()
      }
      if isIdentifier(byte) {
        if start == nil { start = index }
        continue
      }
      defer { start = nil }
      guard byte == UInt8(ascii: "("), !isInString, let start else { continue }
      let before = String(decoding: code[..<start], as: UTF8.self)
      if before.hasSuffix("func ") || before.hasSuffix("case ") { continue }
      let isQualified = before.hasSuffix("Glibc.")
      if before.hasSuffix("try ") || before.hasSuffix("."), !isQualified { continue }
      if index + 1 < code.count, code[index + 1] == UInt8(ascii: ")") { continue }
      let name = String(decoding: code[start..<index], as: UTF8.self)
      if isQualified || !declared.contains(name) { names.append(name) }
    }
    return names
  }

  private static func isIdentifier(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  private static let maxFile = 300
  private static let maxFunction = 60

  static let longFile: @Sendable (SourceFile) -> [Finding] = { file in
    guard file.isSwift || file.path.hasSuffix(".c") || file.path.hasSuffix(".h"),
      file.lines.count > maxFile
    else { return [] }
    let detail = "\(file.path): \(file.lines.count) lines, more than \(maxFile)"
    return [
      Finding(rule: "long-file", area: file.path, amount: file.lines.count, detail: detail)
    ]
  }

  static let longFunctions: @Sendable (SourceFile) -> [Finding] = { file in
    guard file.isSwift else { return [] }
    return functions(file.lines).filter { $0.length > maxFunction }.map { function in
      Finding(
        rule: "long-function", area: "\(file.path)#\(function.name)", amount: function.length,
        detail:
          "\(file.path): \(function.name): \(function.length) lines, more than \(maxFunction)"
      )
    }
  }

  /// By indentation, which swift-format sees to: a body ends at the brace below its declaration's
  /// first letter.
  static func functions(_ lines: [String]) -> [(name: String, length: Int)] {
    var functions: [(name: String, length: Int)] = []
    for (start, line) in lines.enumerated() {
      guard let name = declaredFunction(line) else { continue }
      let indent = line.utf8.prefix { $0 == UInt8(ascii: " ") }.count
      for end in (start + 1)..<max(start + 1, lines.count) {
        let other = lines[end]
        let tail = other.utf8.drop { $0 == UInt8(ascii: " ") }
        guard let first = tail.first, other.utf8.count - tail.count <= indent else { continue }
        // The rest of a declaration over several lines.
        if other.utf8.count - tail.count == indent,
          first == UInt8(ascii: ")") || other.dropFirst(indent).hasPrefix("where ")
            || other.dropFirst(indent).hasPrefix("-> ") || other.dropFirst(indent).hasPrefix("{")
        {
          continue
        }
        if first == UInt8(ascii: "}"), other.utf8.count - tail.count == indent {
          functions.append((name, end - start + 1))
        }
        break
      }
    }
    return functions
  }

  private static func declaredFunction(_ line: String) -> String? {
    guard !line.hasSuffix("}") else { return nil }
    let tokens = SourceFile.code(line).split(separator: " ")
    for (index, word) in tokens.enumerated() {
      if word == "func", index + 1 < tokens.count {
        // A raw identifier is a sentence; the ratchet's lines are words.
        let name = tokens[(index + 1)...].joined(separator: "_")
        if name.hasPrefix("`") { return name.split(separator: "`").first.map(String.init) }
        return String(name.prefix { $0 != "(" && $0 != "<" })
      }
      if word.hasPrefix("init(") || word.hasPrefix("init?(") || word.hasPrefix("init<") {
        return "init"
      }
      // A modifier, or not a declaration at all.
      guard let first = word.utf8.first,
        first == UInt8(ascii: "@") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first)
      else { return nil }
      if ["return", "let", "var", "if", "guard", "case", "self.init("].contains(word) {
        return nil
      }
    }
    return nil
  }

  /// The words that plain English does without (CONTRIBUTING.md).
  private static let forbidden: Set<String> = [
    "anew", "nobody", "somebody", "whoever", "who", "whom", "lest", "besides", "mend", "mended",
    "mends", "told", "tell", "tells", "telling", "himself", "anybody", "everyone", "goes",
  ]

  static let vocabulary: @Sendable (SourceFile) -> [Finding] = { file in
    // These tests have the words as examples.
    guard !file.path.hasPrefix("Tests/TidyTests/") else { return [] }
    var findings: [Finding] = []
    for (number, line) in file.lines.enumerated() {
      for word in lowercasedTokens(line) where forbidden.contains(word) {
        findings.append(
          Finding(
            rule: "word", area: file.area, detail: "\(file.path):\(number + 1): \(word)"))
      }
      for phrase in PhraseRule.everywhere where line.utf8Range(of: phrase) != nil {
        findings.append(
          Finding(
            rule: "word", area: file.area, detail: "\(file.path):\(number + 1): \(phrase)"))
      }
    }
    return findings
  }

  /// Words of as many letters as a forbidden one has; part of no identifier.
  static func lowercasedTokens(_ line: String) -> [String] {
    var tokens: [String] = []
    var word: [UInt8] = []
    var isInIdentifier = false
    for byte in line.utf8 {
      let lower = byte | 0x20
      if (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(lower) {
        // A capital after a small letter begins a part of an identifier.
        if byte != lower, !word.isEmpty { isInIdentifier = true }
        word.append(lower)
      } else if isIdentifier(byte) {
        isInIdentifier = true
      } else {
        if !isInIdentifier, (3...8).contains(word.count) {
          tokens.append(String(decoding: word, as: UTF8.self))
        }
        word.removeAll(keepingCapacity: true)
        isInIdentifier = false
      }
    }
    if !isInIdentifier, (3...8).contains(word.count) {
      tokens.append(String(decoding: word, as: UTF8.self))
    }
    return tokens
  }

  /// A file's name says what is inside without its folder, and so it is there once.
  static func repeatedNames(_ files: [SourceFile]) -> [Finding] {
    let sources = files.filter {
      $0.isSwift && $0.name != "Package.swift" && $0.name != "main.swift"
    }
    return Dictionary(grouping: sources, by: \.name).filter { $0.value.count > 1 }.map {
      name, all in
      Finding(
        rule: "same-name", area: name, amount: all.count,
        detail: "\(name): \(all.map(\.path).joined(separator: ", "))")
    }
  }
}
