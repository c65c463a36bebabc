import Hibernation
import Lifecycle
import Linux
import Supervision

extension WorkerRecord {
  /// The record, unless its worker's cgroup notes that the worker was resumed from the image that
  /// the record names: then it only couldn't be written since, and the worker may run.
  func correctedByNote() -> WorkerRecord {
    guard state == WorkerState.hibernated.rawValue, let path = cgroupPath, let imageMark else {
      return self
    }
    do {
      let group = try WorkerCgroup(path: path, isExternal: external != nil)
      guard try ResumeNote.read(of: group)?.text == imageMark else { return self }
    } catch {
      // Without its group nothing of it can be noted. The record is right unless a note says
      // otherwise.
      return self
    }
    var corrected = self
    corrected.state = WorkerState.resuming.rawValue
    corrected.imageMark = nil
    return corrected
  }
}

extension ImageExpectation {
  /// Of a worker whose memory is in an image.
  static func of(_ mark: ImageMark?) -> ImageExpectation { mark.map { .image($0) } ?? .hibernated }

  /// As a worker's record has it. Only a worker that is recorded as hibernated is certain to have its
  /// memory in an image: a resume is recorded before the image is removed.
  static func of(_ record: WorkerRecord) -> ImageExpectation {
    guard record.state == WorkerState.hibernated.rawValue else { return .unknown }
    guard let mark = record.imageMark.flatMap(ImageMark.init(text:)) else { return .hibernated }
    return .image(mark, in: record.imageDirectory.flatMap(ImageDirectory.init(text:)))
  }
}
