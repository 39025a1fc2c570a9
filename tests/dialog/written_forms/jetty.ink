-> jetty

=== jetty ===
# scene: jetty
Mira: Did you move the boat? # angry
* [Yes] Joss: I did.
    -> sea
* {honest} Which boat?
    Joss: Which boat?
- Mira: The only boat.
~ boat = false
-> sea

=== sea ===
The boat drifts past.
-> END
