import { RaftError, type Clock, type RaftNode } from '../raft/index.ts';
import { fromRaft } from './command/index.ts';
import type { ControlPlane } from './control-plane.ts';
import { EvenkeelError } from './errors.ts';
import type { Logger } from './logger.ts';

/** How long a node that is told to stop tries to hand its leadership over first. */
const STOP_HAND_OVER_MS = 2_000;

export interface TransferParams {
  /** `null`: whichever voter has the most of the log. */
  readonly to: string | null;
  /** From now. */
  readonly deadlineMs: number;
}

export interface Transferred {
  readonly from: string;
  readonly to: string;
  /** The new leader's. */
  readonly term: number;
}

interface Parts {
  readonly raft: RaftNode;
  readonly clock: Clock;
}

/** Serves `raft.transfer` on the Raft leader. Params were checked by the admin surface. */
export function serveTransfer(plane: ControlPlane, parts: Parts): void {
  plane.serve('raft.transfer', async (params) => transfer(parts, params as TransferParams));
}

/**
 * Leader only. Resolves once the member asked for leads. On failure this node goes on leading and the writes that
 * waited meanwhile go on: `not_found` (no such member), `refused` (it leads already, is a learner, is not
 * connected, did not take over in time), `no_leader` (this node does not lead), `deadline_exceeded`.
 */
async function transfer({ raft, clock }: Parts, { to, deadlineMs }: TransferParams): Promise<Transferred> {
  const { id: from, role, leaderId } = raft.status();
  if (role !== 'leader') throw new EvenkeelError('no_leader', `${from} does not lead`, { leader: leaderId });
  const target = to ?? successors(raft)[0];
  if (target === undefined) throw new EvenkeelError('refused', `${from} hears no other voter`);
  checkMember(raft, target);
  try {
    await raft.transferLeadership(target, clock.now() + deadlineMs);
  } catch (error) {
    // What the core refuses is the operator's to settle; asked again at once it would say the same.
    if (error instanceof RaftError && error.code === 'refused') {
      throw new EvenkeelError('refused', error.message);
    }
    throw fromRaft(error);
  }
  const now = raft.status();
  if (now.leaderId !== target) {
    throw new EvenkeelError('refused', `${now.leaderId} was elected instead of ${target}`);
  }
  return { from, to: target, term: now.term };
}

function checkMember(raft: RaftNode, member: string): void {
  const { voters, outgoing, learners, learnersNext } = raft.status().configuration;
  if ([...voters, ...outgoing].includes(member)) return;
  if ([...learners, ...learnersNext].includes(member)) {
    throw new EvenkeelError('refused', `${member} is a learner: only a voter can lead`);
  }
  const members = [...voters, ...learners].join(', ');
  throw new EvenkeelError('not_found', `no member "${member}"; the members are ${members}`);
}

/** The voters that this leader hears, the one with the most of the log first. */
function successors(raft: RaftNode): string[] {
  const { progress, configuration } = raft.status();
  return Object.entries(progress)
    .filter(([id, peer]) => configuration.voters.includes(id) && peer.active && !peer.lost)
    .sort(([a, x], [b, y]) => y.match - x.match || (a < b ? -1 : 1))
    .map(([id]) => id);
}

/** Before this node stops: to the best successor that takes over, so that writes go on at once. */
export async function handOver(parts: Parts, logger: Logger): Promise<void> {
  const { raft, clock } = parts;
  const expiresAt = clock.now() + STOP_HAND_OVER_MS;
  const { role, term } = raft.status();
  if (role !== 'leader') return;
  for (const to of successors(raft)) {
    const deadlineMs = expiresAt - clock.now();
    if (deadlineMs <= 0 || raft.status().role !== 'leader') return;
    try {
      await transfer(parts, { to, deadlineMs });
      logger.info({ term, to }, 'handed the leadership over');
      return;
    } catch (error) {
      logger.warn({ term, to, error: String(error) }, 'could not hand the leadership over');
    }
  }
}
