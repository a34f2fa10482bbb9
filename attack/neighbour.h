/* Another run, that of another tenant: it offers by every means what must not be reached from here. */
#ifndef ATTACK_NEIGHBOUR_H
#define ATTACK_NEIGHBOUR_H

enum { NEAR_PORT = 18789, NEAR_KEY = 0x70660001 };
#define NEAR_ABSTRACT "pinfold-neighbour"
#define NEAR_QUEUE "/pinfold-neighbour"

/* Offers, says by an event what it is and gives its tokens away, and waits until it is ended. An exit status. */
int neighbour_live(void);
/* As a check: prepares the tree and the home for the next check, in every way it can think of. An exit status. */
int neighbour_spoil(void);
/* Events that must not be taken for what they pretend to be; judged by the command. */
void neighbour_gestures(void);
/* Notes the folder in which this began, and goes to where everything is. */
void descriptors_first(void);
#endif
