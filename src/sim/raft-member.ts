import { RaftError, RaftNode, type RaftErrorCode, type RaftLimits } from '../../raft/index.ts';
import { EvenkeelError, type ErrorCode } from '../errors.ts';
import { openDataDirectory } from '../log/index.ts';
import { SILENT_LOGGER } from '../logger.ts';
import { PeerTransport } from '../wire/index.ts';
import type { BootContext, Member, RegisterValue, SimKit, WriteRequest } from './kit.ts';
import {
  decodeResult,
  encodeCommand,
  encodeResult,
  RegisterMachine,
  type RegisterCommand,
  type RegisterResult,
} from './register-machine.ts';
import { tapStateMachine, tapStorage, tapTransport } from './taps.ts';

const CLUSTER_ID = 'simulated';
const PEER_PORT = 7501;
const TRANSFER_MS = 2_000;
const MAX_PENDING = 1_000;
const PROPOSE = 'registers.propose';

const CODES: Readonly<Record<RaftErrorCode, ErrorCode>> = {
  notLeader: 'no_leader',
  // It certainly had no effect, so that a retry is right.
  notCommitted: 'unavailable',
  overloaded: 'overloaded',
  tooLarge: 'limit_exceeded',
  deadlineExceeded: 'deadline_exceeded',
  outcomeUnknown: 'outcome_unknown',
  refused: 'refused',
  stopped: 'unavailable',
};

/** Consensus alone: the real core, node loop, log storage and peer transport under a state machine of registers. */
export const RAFT_KIT: SimKit = { member: bootRaftMember, broker: null };

async function bootRaftMember(context: BootContext): Promise<Member> {
  const { id, members, settings, process, net, disk, tap } = context;
  const { clock, random } = process;
  const directory = await openDataDirectory({
    disk,
    random,
    directory: 'data',
    clusterId: CLUSTER_ID,
    memberId: id,
  });
  const machine = new RegisterMachine();
  const { electionTimeoutMs, heartbeatMs } = settings;
  const limits: Partial<RaftLimits> = {
    electionTimeoutMs,
    heartbeatMs,
    ...settings.limits,
    snapshotRetryMs: electionTimeoutMs * 2,
    maxPendingProposals: MAX_PENDING,
    maxPendingReads: MAX_PENDING,
  };
  const transport = new PeerTransport({
    net,
    clock,
    random,
    logger: SILENT_LOGGER,
    self: {
      clusterId: CLUSTER_ID,
      memberId: id,
      directoryId: directory.identity.directoryId,
      bootId: `${id}-${directory.bootCount}`,
      bootCount: directory.bootCount,
    },
    listen: `${id}:${PEER_PORT}`,
    peers: new Map(members.map((member) => [member, `${member}:${PEER_PORT}`])),
  });
  const node = await RaftNode.start({
    id,
    configuration: { voters: members, outgoing: [], learners: [], learnersNext: [] },
    storage: tapStorage(directory.storage, tap),
    transport: tapTransport(transport, tap),
    stateMachine: tapStateMachine(machine, () => machine.stateHash, tap),
    clock,
    random,
    limits,
  });
  node.onFatal((error) => context.onFatal(error));
  const member = new RaftMember(node, transport, machine, context);
  transport.serve(PROPOSE, async (data, { deadlineMs }) =>
    encodeResult(await member.proposeHere(data, deadlineMs)),
  );
  return member;
}

class RaftMember implements Member {
  readonly #node: RaftNode;
  readonly #transport: PeerTransport;
  readonly #machine: RegisterMachine;
  readonly #context: BootContext;

  constructor(node: RaftNode, transport: PeerTransport, machine: RegisterMachine, context: BootContext) {
    this.#node = node;
    this.#transport = transport;
    this.#machine = machine;
    this.#context = context;
  }

  readonly placement = null;

  get description(): string {
    const { role, term, leaderId, commitIndex, appliedIndex, lastIndex } = this.#node.status();
    return `${role} t${term} of ${leaderId ?? 'nobody'}, log ${lastIndex}, commit ${commitIndex}, applied ${appliedIndex}`;
  }

  get leads(): boolean {
    return this.#node.status().role === 'leader';
  }

  get term(): number {
    return this.#node.status().term;
  }

  get appliedIndex(): number {
    return this.#machine.appliedIndex;
  }

  get stateHash(): string {
    return this.#machine.stateHash;
  }

  /** Every register is there from the start. */
  prepare(): Promise<void> {
    return Promise.resolve();
  }

  async openSession(deadlineMs: number): Promise<number> {
    const result = await this.#propose({ type: 'open' }, deadlineMs);
    if (result.type !== 'opened') throw new Error(`opening a session answers ${result.type}`);
    return result.session;
  }

  async write(request: WriteRequest, deadlineMs: number): Promise<void> {
    await this.#propose({ type: 'write', ...request }, deadlineMs);
  }

  async read(key: string, deadlineMs: number): Promise<RegisterValue> {
    await translated(this.#node.readBarrier(this.#deadline(deadlineMs)));
    return this.#machine.read(key);
  }

  async transferLeadership(to: string): Promise<void> {
    await translated(this.#node.transferLeadership(to, this.#deadline(TRANSFER_MS)));
  }

  async snapshotNow(): Promise<void> {
    await translated(this.#node.snapshotNow());
  }

  checkBounds(): void {
    const { id, pendingProposals, pendingReads } = this.#node.status();
    if (pendingProposals > MAX_PENDING) throw new Error(`bound: ${id} holds ${pendingProposals} proposals`);
    if (pendingReads > MAX_PENDING) throw new Error(`bound: ${id} holds ${pendingReads} reads`);
  }

  async proposeHere(data: Uint8Array, deadlineMs: number): Promise<RegisterResult> {
    const applied = await translated(this.#node.propose(data, this.#deadline(deadlineMs)));
    return applied.result as RegisterResult;
  }

  /** Here if this member leads, else through the one that it believes does. */
  async #propose(command: RegisterCommand, deadlineMs: number): Promise<RegisterResult> {
    const data = encodeCommand(command);
    const { role, leaderId, id } = this.#node.status();
    let result: RegisterResult;
    if (role === 'leader' || leaderId === null || leaderId === id) {
      result = await this.proposeHere(data, deadlineMs);
    } else {
      result = decodeResult(await this.#transport.call(leaderId, PROPOSE, data, deadlineMs));
    }
    if (result.type === 'refused') throw new EvenkeelError(result.code, result.message);
    return result;
  }

  #deadline(ms: number): number {
    return this.#context.process.clock.now() + ms;
  }
}

async function translated<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof RaftError) throw new EvenkeelError(CODES[error.code], error.message);
    throw error;
  }
}
