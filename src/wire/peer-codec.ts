import type { MemberId, Message } from '../../raft/index.ts';
import { MsgpackReader, malformed } from './msgpack-reader.ts';
import { MsgpackWriter } from './msgpack-writer.ts';
import { MAX_MEMBER_ID_BYTES, MAX_SNAPSHOT_BYTES, readMessage, writeMessage } from './peer-messages.ts';

export const PEER_PROTOCOL = 1;

/** Messages of one turn are cut into frames of about this size. */
const FRAME_TARGET_BYTES = 1024 * 1024;
const MAX_MESSAGES_PER_FRAME = 4_096;
const MAX_TEXT_BYTES = 4_096;
const MAX_ERROR_DATA_BYTES = 64 * 1024;
/** Parameters or answer of one call. */
export const MAX_CALL_BYTES = 8 * 1024 * 1024;
/** What a frame may hold beside its one large part. */
const FRAME_SLACK_BYTES = 128 * 1024;
export const MAX_CALL_FRAME_BYTES = MAX_CALL_BYTES + FRAME_SLACK_BYTES;
export const MAX_LOG_FRAME_BYTES = MAX_SNAPSHOT_BYTES + FRAME_SLACK_BYTES;

/**
 * The three sockets a member opens to each peer. `control`: hellos, heartbeats, votes, every reply. `log`:
 * appends and snapshots, so that no backlog of them delays a heartbeat. `calls`: requests and their answers.
 */
export type Lane = 'control' | 'log' | 'calls';
export const LANES: readonly Lane[] = ['control', 'log', 'calls'];

/** Who speaks: a member is (id, directory id), and `bootId` differs for each start of its process. */
export interface PeerIdentity {
  readonly clusterId: string;
  readonly memberId: MemberId;
  readonly directoryId: string;
  readonly bootId: string;
  readonly bootCount: number;
}

/** The first frame of a lane, by whoever dialed. */
export interface HelloFrame extends PeerIdentity {
  readonly kind: 'hello';
  readonly protocol: number;
  readonly to: MemberId;
  readonly lane: Lane;
}

/** Its answer. */
interface WelcomeFrame extends PeerIdentity {
  readonly kind: 'welcome';
  readonly protocol: number;
}

/** Its answer when the sender is not let in; the connection ends. */
interface RefusedFrame {
  readonly kind: 'refused';
  readonly code: string;
  readonly message: string;
}

export interface MessagesFrame extends MessagesHeader {
  readonly kind: 'messages';
  readonly messages: readonly Message[];
}

/** What each frame of messages says of its sender and receiver. */
export interface MessagesHeader {
  readonly clusterId: string;
  readonly from: MemberId;
  readonly to: MemberId;
  readonly fromDirectory: string;
  /** As the hello's answer gave it. */
  readonly toDirectory: string;
  readonly bootId: string;
}

export interface RequestFrame {
  readonly kind: 'request';
  /** Chosen by the caller; its answer repeats it. */
  readonly id: number;
  readonly method: string;
  /** How long the caller waits. */
  readonly deadlineMs: number;
  readonly params: Uint8Array;
}

export interface AnswerFrame {
  readonly kind: 'answer';
  readonly id: number;
  readonly result: Uint8Array;
}

export interface FailureFrame {
  readonly kind: 'failure';
  readonly id: number;
  readonly code: string;
  readonly message: string;
  /** JSON. */
  readonly data: string;
}

export type PeerFrame =
  HelloFrame | WelcomeFrame | RefusedFrame | MessagesFrame | RequestFrame | AnswerFrame | FailureFrame;

const CODES: Readonly<Record<PeerFrame['kind'], number>> = {
  hello: 1,
  welcome: 2,
  refused: 3,
  messages: 4,
  request: 5,
  answer: 6,
  failure: 7,
};

/** Frames that hold all the messages in order, each about `FRAME_TARGET_BYTES` at most unless one message is larger. */
export function encodeMessages(header: MessagesHeader, messages: readonly Message[]): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let next = 0; next < messages.length;) {
    const writer = new MsgpackWriter();
    writer.array(8);
    writer.uint(CODES.messages);
    for (const text of headerTexts(header)) writer.string(text);
    const setCount = writer.openArray();
    let count = 0;
    while (writer.byteLength < FRAME_TARGET_BYTES && count < MAX_MESSAGES_PER_FRAME) {
      const message = messages[next];
      if (message === undefined) break;
      writeMessage(writer, message);
      next += 1;
      count += 1;
    }
    setCount(count);
    frames.push(writer.finish());
  }
  return frames;
}

export function encodePeerFrame(frame: Exclude<PeerFrame, MessagesFrame>): Uint8Array {
  const writer = new MsgpackWriter(frame.kind === 'request' || frame.kind === 'answer' ? 512 : 256);
  switch (frame.kind) {
    case 'hello':
      begin(writer, frame, 8);
      writeIdentity(writer, frame);
      writer.uint(frame.protocol);
      writer.string(frame.to);
      writer.string(frame.lane);
      break;
    case 'welcome':
      begin(writer, frame, 6);
      writeIdentity(writer, frame);
      writer.uint(frame.protocol);
      break;
    case 'refused':
      begin(writer, frame, 2);
      writer.string(frame.code);
      writer.string(clipped(frame.message));
      break;
    case 'request':
      begin(writer, frame, 4);
      writer.uint(frame.id);
      writer.string(frame.method);
      writer.uint(frame.deadlineMs);
      writer.bytes(frame.params);
      break;
    case 'answer':
      begin(writer, frame, 2);
      writer.uint(frame.id);
      writer.bytes(frame.result);
      break;
    case 'failure':
      begin(writer, frame, 4);
      writer.uint(frame.id);
      writer.string(frame.code);
      writer.string(clipped(frame.message));
      writer.string(Buffer.byteLength(frame.data) > MAX_ERROR_DATA_BYTES ? '{}' : frame.data);
      break;
  }
  return writer.finish();
}

/**
 * Reads one frame. Throws `protocol_error` for whatever `encodePeerFrame` and `encodeMessages` would not
 * write. Bytes in the answer are views of `bytes`, which the receiver owns.
 */
export function decodePeerFrame(bytes: Uint8Array): PeerFrame {
  const reader = new MsgpackReader(bytes);
  const count = reader.array(MOST_VALUES);
  if (count === 0) throw malformed('an empty frame');
  const code = reader.uint();
  const frame = readFrame(reader, code, count - 1);
  reader.end();
  return frame;
}

const MOST_VALUES = 9;

function readFrame(reader: MsgpackReader, code: number, values: number): PeerFrame {
  const expect = (count: number): void => {
    if (values !== count) throw malformed(`a frame of ${values} values where ${count} are due`);
  };
  switch (code) {
    case CODES.messages:
      expect(7);
      return readMessages(reader);
    case CODES.request:
      expect(4);
      return {
        kind: 'request',
        id: reader.uint(),
        method: reader.string(MAX_MEMBER_ID_BYTES),
        deadlineMs: reader.uint(),
        params: reader.bytes(MAX_CALL_BYTES),
      };
    case CODES.answer:
      expect(2);
      return { kind: 'answer', id: reader.uint(), result: reader.bytes(MAX_CALL_BYTES) };
    case CODES.failure:
      expect(4);
      return {
        kind: 'failure',
        id: reader.uint(),
        code: reader.string(MAX_MEMBER_ID_BYTES),
        message: reader.string(MAX_TEXT_BYTES),
        data: reader.string(MAX_ERROR_DATA_BYTES),
      };
    case CODES.hello:
      expect(8);
      return {
        kind: 'hello',
        ...readIdentity(reader),
        protocol: reader.uint(),
        to: reader.string(MAX_MEMBER_ID_BYTES),
        lane: readLane(reader),
      };
    case CODES.welcome:
      expect(6);
      return { kind: 'welcome', ...readIdentity(reader), protocol: reader.uint() };
    case CODES.refused:
      expect(2);
      return {
        kind: 'refused',
        code: reader.string(MAX_MEMBER_ID_BYTES),
        message: reader.string(MAX_TEXT_BYTES),
      };
    default:
      throw malformed(`a frame of kind ${code}`);
  }
}

function readMessages(reader: MsgpackReader): MessagesFrame {
  const id = (): string => reader.string(MAX_MEMBER_ID_BYTES);
  const header = {
    clusterId: id(),
    from: id(),
    to: id(),
    fromDirectory: id(),
    toDirectory: id(),
    bootId: id(),
  };
  const messages: Message[] = [];
  for (let left = reader.array(MAX_MESSAGES_PER_FRAME); left > 0; left -= 1) {
    messages.push(readMessage(reader, header.from, header.to));
  }
  return { kind: 'messages', ...header, messages };
}

function headerTexts(header: MessagesHeader): string[] {
  return [header.clusterId, header.from, header.to, header.fromDirectory, header.toDirectory, header.bootId];
}

function begin(writer: MsgpackWriter, frame: PeerFrame, values: number): void {
  writer.array(values + 1);
  writer.uint(CODES[frame.kind]);
}

function writeIdentity(writer: MsgpackWriter, identity: PeerIdentity): void {
  writer.string(identity.clusterId);
  writer.string(identity.memberId);
  writer.string(identity.directoryId);
  writer.string(identity.bootId);
  writer.uint(identity.bootCount);
}

function readIdentity(reader: MsgpackReader): PeerIdentity {
  return {
    clusterId: reader.string(MAX_MEMBER_ID_BYTES),
    memberId: reader.string(MAX_MEMBER_ID_BYTES),
    directoryId: reader.string(MAX_MEMBER_ID_BYTES),
    bootId: reader.string(MAX_MEMBER_ID_BYTES),
    bootCount: reader.uint(),
  };
}

function readLane(reader: MsgpackReader): Lane {
  const name = reader.string(MAX_MEMBER_ID_BYTES);
  const lane = LANES.find((each) => each === name);
  if (lane === undefined) throw malformed('a lane of an unknown name');
  return lane;
}

/** A quarter of the bytes in characters: no character takes more than four. */
function clipped(text: string): string {
  return Buffer.byteLength(text) > MAX_TEXT_BYTES ? text.slice(0, MAX_TEXT_BYTES / 4) : text;
}
