import { Packr } from 'msgpackr';
import { RaftError, type Clock, type Timer } from '../../raft/index.ts';
import { EvenkeelError } from '../errors.ts';
import { checkPlainMsgpack } from '../plain-msgpack.ts';
import { errorOf, Malformed, readResult, type CommandResult } from '../state/index.ts';
import { decodeCommand, encodeCommand, entryLimit } from './codec.ts';
import type { Proposed, ProposeOptions } from './proposal.ts';
import { COMMAND_VERSION, type Command, type CommandEnvelope } from './types.ts';
import { commandProblem } from './validate.ts';

/** What proposing needs of the node. All durations are ms from now. */
export interface ProposalPath {
  readonly nodeId: string;
  readonly clock: Clock;
  leadership(): { readonly leaderId: string | null; readonly term: number };
  /** Called after each change of `leadership()`; the answer unsubscribes. */
  onLeadership(listener: () => void): () => void;
  clusterTimeMs(): number;
  /** Puts an entry into the log and resolves with what applying exactly this entry answered. Rejects with a RaftError. */
  proposeHere(data: Uint8Array, deadlineMs: number): Promise<{ readonly result: unknown }>;
  /** Runs `accept` on another member. Rejects with an EvenkeelError; `unavailable` only where nothing was sent. */
  forward(leaderId: string, data: Uint8Array, deadlineMs: number): Promise<Uint8Array>;
}

/** Between tries at a leader that refused or could not be reached, doubling. */
const FIRST_BACK_OFF_MS = 50;
const MAX_BACK_OFF_MS = 1_000;

const packr = new Packr({ useRecords: false, mapsAsObjects: true });

/**
 * Takes commands on any member: checks them, passes them to the leader, and answers once they are applied. A command
 * is sent again only where it is certain that it did not get into a log; what may have taken effect is never
 * repeated here (hazard 35), only by its client with the same request id.
 */
export class Proposer {
  readonly #path: ProposalPath;

  constructor(path: ProposalPath) {
    this.#path = path;
  }

  /** `ControlPlane.propose`. */
  async propose(command: Command, options: ProposeOptions): Promise<Proposed> {
    const { nodeId, clock } = this.#path;
    const endMs = clock.now() + options.deadlineMs;
    let data = this.#encode(command, options);
    for (let backOffMs = FIRST_BACK_OFF_MS; ; backOffMs = Math.min(2 * backOffMs, MAX_BACK_OFF_MS)) {
      const tried = this.#path.leadership();
      const { leaderId } = tried;
      const local = leaderId === nodeId;
      if (options.inTerm !== undefined && (!local || tried.term !== options.inTerm)) {
        throw new EvenkeelError('no_leader', `this node does not lead in term ${options.inTerm}`, {
          leader: leaderId,
        });
      }
      const tryMs = endMs - clock.now();
      if (tryMs <= 0) throw noLeader(leaderId);
      if (leaderId !== null) {
        try {
          return answered(local ? await this.#here(data, tryMs) : await this.#there(leaderId, data, tryMs));
        } catch (error) {
          if (!neverProposed(error) || options.inTerm !== undefined) throw error;
        }
      }
      const leftMs = endMs - clock.now();
      await this.#leadershipAfter(tried, leaderId === null ? leftMs : Math.min(backOffMs, leftMs));
      data = this.#encode(command, options);
    }
  }

  /** On the leader: what another member passed on. Its bytes are checked like any caller's. */
  async accept(data: Uint8Array, deadlineMs: number): Promise<Uint8Array> {
    const { leaderId } = this.#path.leadership();
    if (leaderId !== this.#path.nodeId) throw noLeader(leaderId);
    const envelope = decodeForwarded(data);
    if (envelope.inTerm !== null) {
      throw new EvenkeelError('protocol_error', 'a decision of one term is never passed on');
    }
    checkCommand(envelope.command);
    // Stamped anew: a follower's cluster time stands still.
    const entry = encodeCommand({ ...envelope, timeMs: this.#timeMs() });
    return packr.pack(await this.#here(entry, deadlineMs));
  }

  /** The entry, stamped with this member's cluster time. */
  #encode(command: Command, options: ProposeOptions): Uint8Array {
    checkCommand(command);
    const data = encodeCommand({
      version: COMMAND_VERSION,
      timeMs: this.#timeMs(),
      request: options.request ?? null,
      inTerm: options.inTerm ?? null,
      command,
    });
    checkSize(command, data);
    try {
      decodeCommand(data);
    } catch (error) {
      throw new EvenkeelError('invalid_argument', error instanceof Error ? error.message : String(error));
    }
    return data;
  }

  #timeMs(): number {
    return Math.max(0, Math.floor(this.#path.clusterTimeMs()));
  }

  async #here(entry: Uint8Array, deadlineMs: number): Promise<CommandResult> {
    try {
      const { result } = await this.#path.proposeHere(entry, deadlineMs);
      return readResult(result, 'result');
    } catch (error) {
      throw fromRaft(error);
    }
  }

  async #there(leaderId: string, data: Uint8Array, deadlineMs: number): Promise<CommandResult> {
    const answer = await this.#path.forward(leaderId, data, deadlineMs);
    checkPlainMsgpack(answer);
    return readResult(packr.unpack(answer), 'result');
  }

  /** Resolves once another member or term leads than was tried, or the time is up. */
  #leadershipAfter(tried: { leaderId: string | null; term: number }, delayMs: number): Promise<void> {
    const { clock } = this.#path;
    return new Promise((resolve) => {
      let timer: Timer | null = null;
      const finish = (): void => {
        unsubscribe();
        if (timer !== null) clock.clearTimeout(timer);
        resolve();
      };
      const unsubscribe = this.#path.onLeadership(() => {
        const { leaderId, term } = this.#path.leadership();
        if (leaderId !== null && (leaderId !== tried.leaderId || term !== tried.term)) finish();
      });
      timer = clock.setTimeout(finish, Math.max(0, delayMs));
    });
  }
}

function checkCommand(command: Command): void {
  const problem = commandProblem(command);
  if (problem !== null) throw new EvenkeelError(problem.code, problem.message);
}

function checkSize(command: Command, data: Uint8Array): void {
  const limit = entryLimit(command);
  if (data.byteLength <= limit) return;
  throw new EvenkeelError(
    'limit_exceeded',
    `the ${command.type} entry takes ${data.byteLength} bytes, at most ${limit} are allowed: send it in parts`,
  );
}

function decodeForwarded(data: Uint8Array): CommandEnvelope {
  try {
    checkPlainMsgpack(data);
    const envelope = decodeCommand(data);
    checkSize(envelope.command, data);
    return envelope;
  } catch (error) {
    if (error instanceof EvenkeelError) throw error;
    const message = error instanceof Malformed ? error.message : 'a command of another version was passed on';
    throw new EvenkeelError('protocol_error', message);
  }
}

function answered(result: CommandResult): Proposed {
  if (!result.ok) throw errorOf(result);
  return { revision: result.revision, value: result.value };
}

/** Certain: the command is in no log and will not be. */
function neverProposed(error: unknown): boolean {
  return error instanceof EvenkeelError && (error.code === 'no_leader' || error.code === 'unavailable');
}

function noLeader(leaderId: string | null): EvenkeelError {
  const message =
    leaderId === null
      ? 'no leader is known: a quorum of members must be up and reach each other'
      : `the leader ${leaderId} did not take the command`;
  return new EvenkeelError('no_leader', message, { leader: leaderId });
}

/** What the consensus says, in the codes that callers know. */
export function fromRaft(error: unknown): unknown {
  if (!(error instanceof RaftError)) return error;
  const open = { outcome: 'unknown' };
  switch (error.code) {
    case 'notLeader':
      return new EvenkeelError('no_leader', error.message, { leader: error.leaderId });
    case 'notCommitted':
    case 'stopped':
    case 'refused':
      return new EvenkeelError('unavailable', error.message);
    case 'overloaded':
      return new EvenkeelError('overloaded', error.message);
    case 'tooLarge':
      return new EvenkeelError('limit_exceeded', error.message);
    case 'deadlineExceeded':
      return new EvenkeelError('deadline_exceeded', error.message, open);
    case 'outcomeUnknown':
      return new EvenkeelError('outcome_unknown', error.message, open);
  }
}
