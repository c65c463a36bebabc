import Policy

/// A sentence on each key of a configuration, for the JSON Schema; a policy's are in `PolicyKeys`. A test holds these
/// complete.
enum KeyDescriptions {
  /// `*` stands for a worker's name.
  static let configuration: [String: String] = {
    var result = [
      "policy": "The name of a shipped policy, or the path of a policy file. Default: standard.",
      "policy_overrides": "Keys of a policy that replace those of `policy`.",
      "state_directory": "The directory of images, logs and reports.",
      "socket": "The path of the control socket, at most 107 bytes.",
      "workers": "The workers, by name.",
      "on":
        "Commands that are run when something happens, with the event as JSON on standard input.",
      "journal": "The history for `events`, `report` and `replay`.",
    ]
    for (key, text) in AdoptionKeyDescriptions.all { result[key] = text }
    for (key, text) in WorkerKeyDescriptions.all { result["workers.*.\(key)"] = text }
    return result
  }()
}
