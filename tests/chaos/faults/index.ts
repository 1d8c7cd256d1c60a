import type { Fault } from '../round.ts';
import { clones } from './clones.ts';
import { cutPair } from './cut-pair.ts';
import { diskFull } from './disk-full.ts';
import { hung } from './hung.ts';
import { reimport } from './reimport.ts';
import { restored } from './restored.ts';

export const FAULTS: readonly Fault[] = [diskFull, restored, clones, hung, cutPair, reimport];
export { diskFull, restored };
