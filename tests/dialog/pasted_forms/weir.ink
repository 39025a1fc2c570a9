VAR met_anna = false
INCLUDE helpers.ink
// The first scene
-> weir

=== weir ===
Rain over the weir. #outside
IVO: How long have you been here?
* [Lie] IVO: A minute.
  ANNA: You are wet through.
* [Tell the truth] "Since six," I said.
  ~ met_anna = true
  -> house
+ {met_anna} ANNA: Go on.
- ANNA: Come in, then.
-> END

== function add(x, y)
~ return x + y

=== house ===
= kitchen
ANNA: Tea? # mood: warm
-> DONE
