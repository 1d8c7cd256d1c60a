import type { Levels } from '../../../placement/index.ts';
import type { PlacementStatus } from '../../wire/index.ts';
import type { CliEnvironment } from '../environment.ts';
import { printableLines } from '../output.ts';
import { levelsTable, levelsText } from '../placement.ts';
import type { FinishedMove } from './moves.ts';

/** What `dev` knows at one moment. */
export interface Frame {
  readonly term: number;
  readonly leaderId: string | null;
  readonly members: readonly { readonly id: string; readonly role: string }[];
  readonly levels: Levels;
  readonly placement: PlacementStatus;
  readonly moves: readonly {
    readonly shard: string;
    readonly from: string | null;
    readonly to: string;
    readonly step: string;
  }[];
  readonly finished: readonly FinishedMove[];
  /** `finished` has everything that the rest of the frame rests on. */
  readonly seen: boolean;
  /** Proven fewest leadership moves from the state `dev` began with; `null`: not provable. */
  readonly minimum: number | null;
}

const CLEAR = '\u001B[H\u001B[J';
const HIDE_CURSOR = '\u001B[?25l';
const SHOW_CURSOR = '\u001B[?25h';
const MOVES_SHOWN = 8;

/** Shows frames: redrawn in place on a terminal, a line for each thing that happens elsewhere. */
export class Screen {
  readonly #environment: CliEnvironment;
  readonly #banner: readonly string[];
  #printed = 0;
  #leader: string | null = null;

  constructor(environment: CliEnvironment, banner: readonly string[]) {
    this.#environment = environment;
    this.#banner = banner;
    environment.out(environment.terminal ? HIDE_CURSOR : `${banner.join('\n')}\n`);
  }

  show(frame: Frame): void {
    if (this.#environment.terminal) {
      const text = [...this.#banner, '', ...frameLines(frame)].join('\n');
      this.#environment.out(`${CLEAR}${printableLines(text)}\n`);
      return;
    }
    const leader = `raft leader ${frame.leaderId ?? 'none'}, term ${frame.term}`;
    if (leader !== this.#leader) this.#environment.out(`${leader}\n`);
    this.#leader = leader;
    for (; this.#printed < frame.finished.length; this.#printed += 1) {
      const move = frame.finished[this.#printed];
      if (move === undefined) return;
      const count = countOf(this.#printed + 1, frame.minimum);
      const line = `moved the leadership of ${move.shard} from ${move.from} to ${move.to} (${count})`;
      this.#environment.out(`${printableLines(line)}\n`);
    }
  }

  /** The last frame, to stay. */
  end(frame: Frame | null): void {
    if (this.#environment.terminal) this.#environment.out(`${CLEAR}${SHOW_CURSOR}`);
    if (frame === null) return;
    this.show(frame);
    if (!this.#environment.terminal)
      this.#environment.out(`\n${levelsText(frame.levels)}\n${movesLine(frame)}\n`);
  }
}

/** The minimum is that of the beginning: what is done to the cluster later may ask for more. */
function countOf(done: number, minimum: number | null): string {
  return minimum === null || done > minimum ? String(done) : `${done} of ${minimum}`;
}

export function movesLine({ finished, minimum }: Frame): string {
  const proven = minimum === null ? 'no minimum can be proven' : `proven minimum ${minimum}`;
  return `leadership moves done ${finished.length}, ${proven}`;
}

function frameLines(frame: Frame): string[] {
  const { term, leaderId, members, levels, placement, moves, finished } = frame;
  const nodes = members.map(({ id, role }) => `${id} ${role}`).join('  ');
  const state = placement.paused ? 'paused' : placement.level === true ? 'level' : 'levelling';
  const shown = moves
    .slice(0, MOVES_SHOWN)
    .map(({ shard, from, to, step }) => `  ${shard}  ${from ?? '-'} -> ${to}  ${step}`);
  const more = moves.length > MOVES_SHOWN ? [`  and ${moves.length - MOVES_SHOWN} more`] : [];
  const last = finished.slice(-1).map(({ shard, from, to }) => `  last: ${shard}  ${from} -> ${to}`);
  return [
    `raft   term ${term}  leader ${leaderId ?? 'none'}   ${nodes}`,
    `state  ${state}   ${movesLine(frame)}`,
    '',
    levelsTable(levels),
    '',
    `moves in flight ${moves.length}`,
    ...shown,
    ...more,
    ...last,
  ];
}
