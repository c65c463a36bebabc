/// Makes a foreign text safe for a terminal and for one line. Control characters (C0, DEL, C1),
/// line separators and characters that change the direction of writing are escaped as in Swift. So
/// the name of a worker can't move the cursor, and can't look like another name.
public func escaped(_ text: String) -> String {
  guard text.unicodeScalars.contains(where: mustBeEscaped) else { return text }
  var result = ""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "\n": result += "\\n"
    case "\r": result += "\\r"
    case "\t": result += "\\t"
    case _ where mustBeEscaped(scalar): result += "\\u{\(String(scalar.value, radix: 16))}"
    default: result.unicodeScalars.append(scalar)
    }
  }
  return result
}

/// True if the character moves a terminal's cursor, changes the terminal's state or reorders a
/// line.
func mustBeEscaped(_ scalar: Unicode.Scalar) -> Bool {
  switch scalar.value {
  case 0..<0x20, 0x7F..<0xA0: true
  case 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
  default: false
  }
}

/// A command as it can be typed into a shell, with quotes around arguments that need them.
public func shellText(_ command: [String]) -> String {
  command.map { argument in
    let plain = argument.unicodeScalars.allSatisfy {
      $0.properties.isAlphabetic || ("0"..."9").contains($0)
        || "%+,-./:=@_".unicodeScalars.contains($0)
    }
    if plain, !argument.isEmpty { return argument }
    let quoted = argument.split(separator: "'", omittingEmptySubsequences: false)
      .joined(separator: "'\\''")
    return escaped("'\(quoted)'")
  }.joined(separator: " ")
}
