import { Packr } from 'msgpackr';
import { Fields, Malformed } from '../state/index.ts';
import { MAX_ENTRY_BYTES, MAX_PLACEMENT_ENTRY_BYTES } from './limits.ts';
import { readCommand, UnknownCommand } from './read-command.ts';
import { COMMAND_VERSION, type Command, type CommandEnvelope } from './types.ts';

const packr = new Packr({ useRecords: false, mapsAsObjects: true });

/** The bytes of one entry; the caller's own, never a view of a shared buffer. */
export function encodeCommand(envelope: CommandEnvelope): Uint8Array {
  return new Uint8Array(packr.pack(envelope));
}

/**
 * Reads an entry back, checking every field. Throws `UnknownCommand` for a version or a type from a newer
 * member, `Malformed` for bytes that are no command: where these are found in the log, the member stops.
 */
export function decodeCommand(data: Uint8Array): CommandEnvelope {
  const f = new Fields(unpack(data), 'entry');
  const version = f.integer('version');
  if (version !== COMMAND_VERSION) {
    throw new UnknownCommand(
      `an entry of command version ${version} is not known to this version (${COMMAND_VERSION}): upgrade this member`,
    );
  }
  const timeMs = f.integer('timeMs');
  const request = f.nullable('request', (key) => {
    const r = f.fields(key);
    const read = { session: r.integer('session'), n: r.integer('n') };
    r.end();
    return read;
  });
  const inTerm = f.nullable('inTerm', (key) => f.integer(key));
  const command = readCommand(f.fields('command'));
  f.end();
  return { version, timeMs, request, inTerm, command };
}

/** Bytes that an entry of this command may have. */
export function entryLimit(command: Command): number {
  return command.type === 'placement' ? MAX_PLACEMENT_ENTRY_BYTES : MAX_ENTRY_BYTES;
}

function unpack(data: Uint8Array): unknown {
  try {
    // A view of its own: the decoder leaves a property on what it reads, and the log keeps the bytes.
    return packr.unpack(data.subarray());
  } catch (error) {
    throw new Malformed(
      'entry',
      `is not MessagePack (${error instanceof Error ? error.message : 'unreadable'})`,
    );
  }
}
