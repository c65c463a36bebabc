import YAML

// These functions make keys of sections, paths and commands, and change keys.

extension Key {
  /// Makes a section that is a separate value. Keys whose values are as in `usual` aren't written.
  init<Section>(
    _ name: String, _ path: WritableKeyPath<Root, Section>, usual: Section, about: String,
    check: @escaping (MappingReader, inout Section) -> Void = { _, _ in },
    @KeyList<Section> keys: () -> [Key<Section>]
  ) {
    let keys = keys()
    self.init(
      name, shape: .mapping(MappingShape(keys)), about: about,
      read: { reader, root in
        reader.section(name) { inner in
          var section = root[keyPath: path]
          keys.read(inner, into: &section)
          check(inner, &section)
          root[keyPath: path] = section
        }
      },
      write: { root in
        let section = root[keyPath: path]
        let pairs = keys.map { $0.omitted(if: usual) }.pairs(of: section)
        return pairs.isEmpty ? nil : .mapping(pairs)
      },
      copy: { $1[keyPath: path] = $0[keyPath: path] })
  }

  /// Makes a key with a mapping that is replaced as a whole, or with one value that is short for
  /// it.
  ///
  /// - Parameters:
  ///   - isShort: returns true if the short form is enough for a value.
  ///   - base: the value over which the mapping's keys are laid.
  ///   - check: reports contradictions between the keys.
  init<Value>(
    _ name: String, _ path: WritableKeyPath<Root, Value?>, short: Converter<Value>,
    isShort: @escaping (Value) -> Bool, over base: Value, about: String,
    check: @escaping (MappingReader, Value) -> Void, @KeyList<Value> keys: () -> [Key<Value>]
  ) {
    let keys = keys()
    self.init(
      name, shape: .either([short.shape, .mapping(MappingShape(keys))]), about: about,
      read: { reader, root in
        guard let node = reader.node(name) else { return }
        guard case .mapping = node, let inner = reader.reader(of: node, called: name) else {
          if let value = reader.convert(node, called: name, as: short) {
            root[keyPath: path] = value
          }
          return
        }
        var value = base
        keys.read(inner, into: &value)
        inner.finish()
        check(inner, value)
        root[keyPath: path] = value
      },
      write: { root in
        root[keyPath: path].map { isShort($0) ? short.write($0) : .mapping(keys.pairs(of: $0)) }
      },
      copy: { $1[keyPath: path] = $0[keyPath: path] })
  }

  /// Makes a key with a path, relative to the file's directory.
  init(
    _ name: String, path: WritableKeyPath<Root, String?>, expects: String,
    check: @escaping (String) -> Problem? = { _ in nil }, about: String, usual: String? = nil
  ) {
    self.init(
      name, shape: .text, about: about, usual: usual,
      read: { reader, root in
        let converter = Converter.path(expects, from: reader.directory).checked(check)
        reader.read(name, as: converter).map { root[keyPath: path] = $0 }
      },
      write: { $0[keyPath: path].map(WorkerRenderer.escaped) },
      copy: { $1[keyPath: path] = $0[keyPath: path] })
    kind = "path"
  }

  /// Makes a key with a program and its arguments. An empty list means that there is none.
  init(_ name: String, command path: WritableKeyPath<Root, [String]>, about: String) {
    self.init(
      name, shape: ValueShape.text.orList, about: about,
      read: { reader, root in
        reader.commands.read(name, in: reader).map { root[keyPath: path] = $0 }
      },
      write: { WorkerRenderer.command($0[keyPath: path]).nonEmpty },
      copy: { $1[keyPath: path] = $0[keyPath: path] })
  }

  /// Returns this key for a value that contains this one's `Root`.
  func at<Whole>(_ path: WritableKeyPath<Whole, Root>) -> Key<Whole> {
    Key<Whole>(
      name, shape: shape, about: about, holder: holder, usual: usual,
      read: { read($0, &$1[keyPath: path]) }, write: { write($0[keyPath: path]) },
      copy: { copy($0[keyPath: path], &$1[keyPath: path]) })
  }

  /// Returns this key with other names in the documentation.
  ///
  /// - Parameter kind: the name of the value's kind.
  func called(_ kind: String, usual: String = "none", isAtLaunch: Bool = false) -> Key {
    var key = self
    (key.kind, key.usual, key.isAtLaunch) = (kind, usual, isAtLaunch)
    return key
  }

  /// Returns this key so that it isn't written if its value is as in `usual`.
  func omitted(if usual: Root) -> Key {
    var key = self
    key.write = { root in
      let value = write(root)
      return value?.flow == write(usual)?.flow ? nil : value
    }
    return key
  }
}
