export { Machine } from './machine.ts';
