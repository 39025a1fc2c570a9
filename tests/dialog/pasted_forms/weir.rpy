define a = Character("Anna", color="#c8ffc8")
define i = Character('Ivo')

label start:
    scene bg weir
    show anna happy at left
    "Rain over the weir."
    a "How long have you been here?"
    i "Since six." with vpunch
    menu:
        "Go in":
            jump house
        "Wait":
            a "As you like."
    return
