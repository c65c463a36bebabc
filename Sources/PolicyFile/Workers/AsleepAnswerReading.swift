import Policy
import YAML

extension Converter where Value == AsleepAnswer {
  /// A port such as `8080`, or a mapping such as `{ port: 8080, path: /healthz }`.
  static var asleepAnswer: Converter {
    let port = Converter<UInt16>.port
    let keys = MappingShape()
    keys.add("port", port.shape)
    keys.add("path", .text)
    keys.required = ["port"]
    let expects = "a port, or `{ port: 8080, path: /healthz }`"
    return Converter(expects: expects, shape: .either([port.shape, .mapping(keys)])) { node in
      guard case .mapping(let mapping) = node else {
        return port.convert(node).map { AsleepAnswer(port: $0) }
      }
      var answer = AsleepAnswer(port: 0)
      for (key, value) in mapping {
        switch key.scalar?.string {
        case "port":
          switch port.convert(value) {
          case .success(let number): answer.port = number
          case .failure: return .problem("needs a `port` from 1 to 65535")
          }
        case "path":
          guard let path = value.scalar?.string, path.hasPrefix("/"), !path.contains(" ") else {
            return .problem("needs a `path` that begins with `/`")
          }
          answer.path = path
        case let other:
          let name = other ?? ""
          return .problem(
            "has no key `\(shortened(name))`",
            suggestion: didYouMean(name, among: ["port", "path"]) ?? "known: port, path")
        }
      }
      return answer.port == 0
        ? .problem("needs a `port`", suggestion: "write `port: 8080`, for example")
        : .success(answer)
    }
  }
}

extension Converter where Value == UInt16 {
  static var port: Converter {
    Converter<Int>.integer(1...65_535).map({ UInt16($0) }, back: { Int($0) })
  }
}
